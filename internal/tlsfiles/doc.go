// Package tlsfiles makes TLS configurations of the files that ZooKeeper's ssl.* keys name: a key store,
// with a private key and its certificates, and a trust store, with the certificates of the authorities
// that others' certificates must lead to. It reads PEM, PKCS #12 and JKS, and follows the files: when they
// change, what Server and Client return changes with them. Files that cannot be used change nothing.
//
// One Files is for one use, with its own settings: one for clients (ssl.*), another for the peer port
// (ssl.quorum.*), each as a server and as a client.
//
// It opens no connection (internal/tlsport does), and knows nothing of who may do what. Watch is its only
// loop, on its caller's goroutine.
package tlsfiles
