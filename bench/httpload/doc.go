// Package httpload puts load on HTTP APIs for coordination, zk-lite's and, to compare, the JSON
// gateway of etcd: reads and writes (Run), locks acquired and released (Locks), and changes
// sent to many streams (Streams). The results are a load.Result, with the clock and the
// percentiles of package load.
//
// It writes requests and reads answers on raw connections, HTTP/1.1 with keep-alive and
// no pipelining: net/http's client would cost more than the servers that it shares
// the machine with.
//
// # Concurrency
//
// A connection belongs to one goroutine at a time; every goroutine ends before the
// function that started it returns; those of Feeds, before Close does.
package httpload
