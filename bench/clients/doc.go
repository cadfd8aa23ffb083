// Command clients puts a load on one server of ZooKeeper's protocol through a Go client,
// package client of zk-lite or go-zookeeper, for bench/compare. It reads a load.Config as
// JSON from standard input and writes the load.Result, with this process's CPU and
// allocations, as JSON to standard output.
//
//	clients go-zookeeper|zk-lite|zk-lite-async
//
// It is a module of its own: go-zookeeper stays out of zk-lite's dependencies.
//
// # Concurrency
//
// A goroutine for each call under way, as programs that use these clients have them; the
// asynchronous half has one for all.
package main
