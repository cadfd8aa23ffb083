// Package interop runs third-party ZooKeeper clients against a zk-lite ensemble of real
// processes: kazoo, zkCli.sh, the Java client, the C client and go-zookeeper. It has no code
// but tests, and they need the clients: run them with -tags interop. The README beside this
// directory lists what to install.
//
// A client's checks are written in its own language, in testdata, because the subject of the
// test is how the client sees the server. Program and test talk over the program's standard
// input and output, one JSON object per line: each check becomes a subtest, and the test kills
// or starts servers when the program asks for it (see message in integration/cluster). After every
// program the replicas are compared.
package interop
