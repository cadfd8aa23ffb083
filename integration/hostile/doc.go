// Package hostile contains the hostile client: requests that are generated, not written case by case, sent in the
// ways that hurt a server most, while others use the same servers. It has no code but tests, which need root.
//
// # Requests
//
// shapes reads the product's own tables. For each opcode that wire.OpCode.ClientRequest lets a client send, it takes
// the fields of the record that wire.NewRequest returns; for each operation of the HTTP port, the parameters and the
// body in the server's OpenAPI document. A field has the extremes of its kind: length, count, depth, distinct values,
// the paths of the largest znodes and of those that belong to others. One field at a time is at an extreme, then two,
// where the connection's identities count as a field. So a new opcode or operation is tried without a line here; a
// field of a kind that has no extremes fails the test.
//
// # Servers and witnesses
//
// An arena is three servers, each in a control group with little memory, where a process that needs more is killed;
// a witness at each of them, which writes and reads znodes that only it may access; and one more for each HTTP
// port. A campaign sends requests in one manner: always reading, never reading, many that leave something behind,
// without a majority, over HTTP. After each of them the servers live, no witness has waited longer than its
// session's timeout or lost its session, all servers start again, and the data of the witnesses is unchanged, bit
// by bit.
//
// # Work
//
// The cost of a request is counted, not timed: another build of the server, with the counters of Go's coverage in
// the state machine, the ports and the parts of the standard library that they use, reports how many blocks of code
// a request has run, and how many bytes were allocated for it. Both are bounded by the bytes of request and reply.
//
// The gate takes a fixed part of the pairs; -hostile.all (`make hostile`) takes all. -hostile.release tests an older
// commit of this repository instead: 1ebe317, which is v1.0, fails each campaign.
package hostile
