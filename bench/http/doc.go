// Command http measures zk-lite's HTTP API beside etcd's JSON gateway, three servers
// each: requests a second for reads, writes and a lock taken and given back, and events
// a second to 1,000 streams. It writes a table to bench/results.
//
//	go run ./bench/http          # five rounds of 5 s a row, 6 minutes
//	go run ./bench/http -short   # three rounds of 3 s, 3 minutes
//
// # Concurrency
//
// One thing is measured at a time, by the main goroutine.
package main
