// Package fourletter asks servers how they are, by ZooKeeper's four-letter
// words srvr and mntr, which need no session and which servers answer that have
// no leader. It knows no cobra and prints nothing.
package fourletter
