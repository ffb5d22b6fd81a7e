"""The seal on every datagram of a group that has a key: between the wire and the transport, and
pure. Keys, random bytes and the time come in as inputs, and the simulator drives it as nodes do.

A sealed datagram:

     0   2  magic `RS`
     2   1  version
     3   1  cipher: 1 AES-256-GCM, 2 ChaCha20-Poly1305
     4   8  key id, derived from the group's key and its name
    12  16  boot: random, drawn anew at every start of a node
    28   8  counter of the datagrams of this boot, from 1
    36   .  the frame, encrypted
     .  16  authentication tag, over the header too

`keys` are what the group shares, `ciphers` what is made of them, `proofs` the messages by which
nodes prove that they are alive, `lives` what is known of a peer, and `seal` puts seals on and takes
them off. The theory of operation is in `seal`.
"""
