"""Plans of sweeps: what they mean, and what is said of those that mean nothing."""

import pytest

from roundelay.experiments.load import Cell
from roundelay.experiments.plan import CELLS_ASK, PlanError, papers, parse, read
from roundelay.experiments.toml_lines import Lines


def test_a_grid_is_every_combination_with_every_seed():
    plan = parse(
        """
        seeds = 2
        [common]
        size = "1KB"
        [[grid]]
        protocol = ["totem", "fifo"]
        nodes = [3, 5]
        [[grid]]
        protocol = "dtp"
        rate = "50/s"
        loss = "5%"
        latency = "2ms"
        """
    )
    tasks = plan.runs()
    assert len(tasks) == plan.size == 10
    assert [(t.cell.protocol, t.cell.nodes, t.seed) for t in tasks[:5]] == [
        ("totem", 3, 0),
        ("totem", 3, 1),
        ("totem", 5, 0),
        ("totem", 5, 1),
        ("fifo", 3, 0),
    ]
    assert tasks[-1].cell == Cell(
        "dtp", rate_per_s=50.0, loss_share=0.05, latency_us=2000.0, size_bytes=1024
    )


def test_a_number_stands_under_the_name_with_its_unit():
    (task,) = parse('[[grid]]\nprotocol = "totem"\nlatency_us = 250').runs()
    assert task.cell.latency_us == 250.0


def test_a_cell_that_comes_up_twice_is_run_once():
    plan = parse('[[grid]]\nprotocol = ["totem", "fifo"]\n[[grid]]\nprotocol = "totem"')
    assert plan.size == 3
    assert [task.cell.protocol for task in plan.runs()] == ["totem", "fifo"]


def test_quick_is_instead_of_what_the_rest_says():
    text = """
        seeds = 5
        [[grid]]
        protocol = "totem"
        messages = [10, 20]
        [grid.quick]
        messages = 2
        [[grid]]
        protocol = "fifo"
        [quick]
        seeds = [7]
        nodes = 2
        """
    assert parse(text).size == 15
    quick = parse(text, quick=True).runs()
    assert [(t.cell.protocol, t.cell.messages, t.cell.nodes, t.seed) for t in quick] == [
        ("totem", 2, 2, 7),
        ("fifo", 1000, 2, 7),
    ]


def test_a_list_can_be_one_value():
    text = 'experiment = "dtp"\n[[grid]]\nprotocol = "dtp"\nnodes = 2\ngap = "1s"\nmessages = 9\n'
    one = parse(f"{text}activity = [1, 2]").runs()
    two = parse(f"{text}activity = [[1, 2], [3, 4]]").runs()
    assert [task.cell.activity for task in one] == [(1.0, 2.0)]
    assert [task.cell.activity for task in two] == [(1.0, 2.0), (3.0, 4.0)]


def test_papers_are_measured_with_three_seeds_at_least():
    for name in papers():
        assert len(read(name, quick=True).seeds) >= 3


WRONG = {
    'protocol = "corosync"': "line 4: no protocol is called 'corosync'; write one of: allack, atop",
    'protocol = "totem"\nrate = "10ms"': "line 5: '10ms' is not a frequency; write one like 1000/s",
    'protocol = "totem"\nrate = 10': 'line 5: rate needs a unit; write rate = "10/s" or',
    'protocol = "totem"\nlatency_us = "1ms"': "line 5: latency_us is a number, not '1ms'",
    'protocol = "totem"\nnodes = []': "line 5: nodes = [] leaves no cell at all; write at least",
    'protocol = "totem"\nnodes = [3, 3]': "line 5: nodes has a value twice; write each once",
    'protocol = "totem"\nnodes = 2.5': "line 5: nodes is a whole number, not 2.5",
    'protocol = "totem"\nnodes = true': "line 5: nodes is a whole number, not True",
    'protocol = "totem"\nsize_bytes = 1.5': "line 5: size_bytes = 1.5 is no whole number of bytes",
    'protocol = "totem"\nmode = "vies"': "line 5: mode is 'static' or 'views', not 'vies'",
    'protocol = "totem"\nspeed = 3': "line 5: there is no parameter 'speed'; write one of",
    'protocol = "totem"\nrate = "1/s"\nrate_per_s = 1': "line 6: rate_per_s is given twice",
    "nodes = 3": "line 3: this grid does not say protocol; write that too",
    'protocol = "template"\nmode = "views"': "line 3: template runs on static groups only",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_parameter_is_named_with_its_line(wrong):
    with pytest.raises(PlanError) as caught:
        parse(f"# A plan.\nseeds = 1\n[[grid]]\n{wrong}\n", "my.toml").runs()
    assert f"my.toml {WRONG[wrong]}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "plan line 1: the plan has no cells; write [[grid]]"),
        ("seeds = 3\nnodes = 3", "plan line 2: 'nodes' means nothing here; write one of: exper"),
        ("seeds = 0\n[[grid]]", "plan line 1: seeds = 0 runs nothing; write how many"),
        ("\nseeds = []\n[[grid]]", "plan line 2: seeds = [] runs nothing"),
        ('experiment = "atom"', "plan line 1: no experiment is called 'atom'; there are: atop"),
        ('claims = "atom"\n[[grid]]', "plan line 1: no claims are known of 'atom'; write one of"),
        ("traces = 1\n[[grid]]", "plan line 1: traces is true or false"),
        ('experiment = "dtp"\ntraces = true', "plan line 2: dtp keeps no traces; leave this line"),
        ("grid = 3", "plan line 1: a grid is a table; write [[grid]]"),
        ("seeds = 1\nquick = 3\n[[grid]]", "plan line 2: quick is a table; write [quick]"),
        ("seeds = 1\n[[grid]\n", "plan line 2: this is not TOML: "),
        (
            '[[grid]]\nprotocol = "totem"\n',
            "plan does not say what is quick; write a table",
        ),
        ('[[grid]]\nprotocol = "totem"\n[quick]\nnodes = "x"', "plan line 4: nodes is a whole num"),
        (
            '[[grid]]\nprotocol = "fifo"\n[[grid]]\nprotocol = "fifo"\n[grid.quick]\nnodes = 0.5',
            "plan line 6: nodes is a whole number, not 0.5",
        ),
    ],
)
def test_a_wrong_plan_is_a_sentence(text, sentence):
    with pytest.raises(PlanError) as caught:
        parse(text, quick="quick" in sentence or "quick" in text).runs()
    assert sentence in str(caught.value)


def test_a_million_cells_are_run_only_if_they_are_meant():
    hundred = list(range(2, 102))
    text = f"""seeds = 100
[[grid]]
protocol = "fifo"
[[grid]]
protocol = "totem"
nodes = {hundred}
messages = {hundred}
"""
    plan = parse(text, "big.toml")
    with pytest.raises(PlanError) as caught:
        plan.refuse_too_many(sure=False)
    assert str(caught.value) == (
        "big.toml line 4: 1,000,100 cells (nodes 100 x messages 100 x seeds 100 in this grid); "
        "shorten a list, or add --yes if all of them are meant"
    )
    plan.refuse_too_many(sure=True)
    more = parse(text.replace("seeds = 100", "seeds = 1000"), "big.toml")
    with pytest.raises(PlanError, match="shorten a list, or split the plan"):
        more.refuse_too_many(sure=True)


def test_as_many_as_anybody_writes_need_no_word():
    plan = parse(f'seeds = {CELLS_ASK}\n[[grid]]\nprotocol = "fifo"')
    plan.refuse_too_many(sure=False)


def test_a_plan_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(PlanError, match=r"cannot read the plan .*No such file.*papers/dtp"):
        read(str(tmp_path / "nothing.toml"))
    with pytest.raises(PlanError, match="there is no plan papers/pbft; there are: papers/atop"):
        read("papers/pbft")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PlanError, match="it is no text"):
        read(str(tmp_path / "binary.toml"))


def test_lines_of_inline_tables_are_where_they_begin():
    lines = Lines('a = 1\ngrid = [{ protocol = "x" }]\n')
    assert lines.find("grid", 0, "protocol") == 2
    assert lines.find("nowhere", 0, "at all") == 1
