// Package fourletter reads the state of servers with ZooKeeper's four-letter words srvr
// and mntr. They need no session, and servers without a leader answer them. The package
// prints nothing and starts no goroutine.
package fourletter
