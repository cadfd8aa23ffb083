module github.com/zk-lite/zk-lite/bench/clients

go 1.26.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/zk-lite/zk-lite v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/pavlo-v-chernykh/keystore-go/v4 v4.5.0 // indirect
	github.com/youmark/pkcs8 v0.0.0-20240726163527-a2c0da244d78 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	software.sslmate.com/src/go-pkcs12 v0.7.4 // indirect
)

replace github.com/zk-lite/zk-lite => ../..
