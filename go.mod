module github.com/zk-lite/zk-lite

go 1.26
