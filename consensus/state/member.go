package state

import (
	"fmt"
	"strconv"
	"strings"
)

// ServerID names a server of the ensemble: the N of server.N, 0 to MaxServerID.
type ServerID uint64

// MaxServerID is the largest ServerID. A session id and the owner of a znode
// with a TTL have the same place for it, the top byte; there 255 marks a TTL.
const MaxServerID = 254

// NoServer is no server's id: "unknown" or "any". In JSON it is -1.
const NoServer ServerID = 255

// Number returns the id, and -1 for NoServer.
func (id ServerID) Number() int64 {
	if id == NoServer {
		return -1
	}
	return int64(id)
}

// MarshalJSON implements json.Marshaler.
func (id ServerID) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, id.Number(), 10), nil }

// UnmarshalJSON implements json.Unmarshaler. An error names a number that is no server's.
func (id *ServerID) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err != nil || n < -1 || n > MaxServerID:
		return fmt.Errorf("%s is not a server id from 0 to %d", text, MaxServerID)
	case n == -1:
		*id = NoServer
	default:
		*id = ServerID(n)
	}
	return nil
}

// Member is what the ensemble publishes about a server.
type Member struct {
	ID     ServerID
	Peer   string // host:port:port, as in zoo.cfg
	Client string // host:port of the ZooKeeper port; may be empty
	HTTP   string // host:port of the HTTP API; may be empty
	// Addr is the host:port by which the others reach the peer port of a server
	// that was added to a running ensemble, and so is in nobody's file; empty for
	// the others. It and Vote stay when the server publishes itself.
	Addr string
	Vote bool // is to vote as soon as it has caught up
	// Key is the SHA-256 of the public key that it shows to the others (package peerkeys); zero: not known yet.
	Key [32]byte
	// Token is the SHA-256 of the secret with which a server may join under this id, once, until TokenUntil,
	// milliseconds since the epoch; zero: none.
	Token      [32]byte
	TokenUntil int64

	Voter bool // filled in from the configuration
}

// clone copies the strings out of the log entry they lie in.
func (m Member) clone() Member {
	m.Peer, m.Client, m.HTTP = strings.Clone(m.Peer), strings.Clone(m.Client), strings.Clone(m.HTTP)
	m.Addr = strings.Clone(m.Addr)
	return m
}

// append encodes what a server publishes, without its id and Voter.
func (m *Member) append(b []byte) []byte {
	b = appendString(appendString(appendString(b, m.Peer), m.Client), m.HTTP)
	b = append(appendString(b, m.Addr), flag(m.Vote))
	b = append(append(b, m.Key[:]...), m.Token[:]...)
	return appendInt(b, m.TokenUntil)
}

// memberBytes is how many a member takes at least in a snapshot.
const memberBytes = 1 + 4 + 1 + 32 + 32 + 1 + 1

func readMember(id ServerID, r *reader) Member {
	m := Member{
		ID: id, Peer: r.string(), Client: r.string(), HTTP: r.string(),
		Addr: r.string(), Vote: r.byte() == 1,
	}
	copy(m.Key[:], r.take(len(m.Key)))
	copy(m.Token[:], r.take(len(m.Token)))
	m.TokenUntil = r.int()
	return m
}
