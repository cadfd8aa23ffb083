module github.com/zk-lite/zk-lite/bench/clients

go 1.26.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/zk-lite/zk-lite v0.0.0
)

require github.com/cespare/xxhash/v2 v2.3.0 // indirect

replace github.com/zk-lite/zk-lite => ../..
