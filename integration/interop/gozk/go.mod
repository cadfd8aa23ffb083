module github.com/zk-lite/zk-lite/integration/interop/gozk

go 1.26

require github.com/go-zookeeper/zk v1.0.4
