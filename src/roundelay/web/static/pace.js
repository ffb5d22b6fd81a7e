// How often the page draws. It degrades on purpose: pictures that stutter help nobody, and a browser
// that draws must not take the processor from the nodes beside it.

/** Milliseconds between two drawings, by level. The last one draws only when there is news. */
export const LEVELS = [0, 100, Infinity];
const LOOK_AT = 30; // Frames that are looked at before the level changes.
const LATE_MS = 22; // Mean gap between frames above which the browser does not keep up with 60/s.
const DEAR_MS = 8; // Mean time of one drawing above which drawing takes half a core.
const PATIENCE_MS = 5000; // Time at one level before a better one is tried; doubled at each relapse.

/** Decides, frame by frame, whether to draw. Times are in milliseconds, and given. */
export class Pace {
  constructor({ still = false } = {}) {
    this.level = still ? 2 : 0;
    this.still = still; // The reader wants no motion.
    this.drawn = -Infinity;
    this.last = null;
    this.gaps = [];
    this.costs = [];
    this.since = null;
    this.patience = PATIENCE_MS;
  }

  /** A frame has come: whether to draw now. */
  frame(now) {
    if (this.since === null) this.since = now;
    if (this.last !== null) this.gaps.push(Math.min(now - this.last, 250));
    this.last = now;
    if (this.gaps.length >= LOOK_AT) this.judge(now);
    if (now - this.drawn < LEVELS[this.level]) return false;
    this.drawn = now;
    return true;
  }

  /** A drawing took so long. */
  cost(ms) {
    this.costs.push(ms);
    if (this.costs.length > LOOK_AT) this.costs.shift();
  }

  judge(now) {
    const mean = (all) => all.reduce((sum, one) => sum + one, 0) / Math.max(all.length, 1);
    const late = mean(this.gaps) > LATE_MS;
    const dear = mean(this.costs) > DEAR_MS * (this.level + 1);
    this.gaps = [];
    if (this.still) return;
    if ((late || dear) && this.level < 2) {
      this.level += 1;
      this.patience = Math.min(this.patience * 2, 120000);
      this.since = now;
      this.costs = [];
    } else if (!late && !dear && this.level > 0 && now - this.since > this.patience) {
      this.level -= 1;
      this.since = now;
      this.costs = [];
    }
  }

  /** What to tell the reader; empty while all is drawn. */
  get sentence() {
    if (this.still) return "Motion is off, as your system asks for.";
    return ["", "Drawn 10 times a second, as this machine is busy.", "Drawn only on news, as this machine is very busy."][this.level];
  }
}
