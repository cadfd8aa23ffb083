package state

import (
	"fmt"
	"strconv"
	"strings"
)

// ServerID names a server of the ensemble: the N of server.N, 0 to MaxServerID.
type ServerID uint64

// MaxServerID is the largest ServerID. It is in the top byte of a session id,
// as the mark 255 is in that of the owner of a znode with a TTL.
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

// UnmarshalJSON implements json.Unmarshaler. It refuses numbers out of range.
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
	// that was added to a running ensemble, and so is in no configuration file;
	// empty for the others. It and Vote do not change when the server publishes
	// itself.
	Addr string
	Vote bool // becomes a voter once it has caught up
	// The release that it runs, and the levels that it supports; MaxLevel 0: not known.
	Version, Commit    string
	MinLevel, MaxLevel Level
	// Key is the SHA-256 of its public key for the others (package peerkeys); zero: not known yet.
	Key [32]byte
	// Token is the SHA-256 of the secret with which a server may join under this id, once, until TokenUntil,
	// milliseconds since the epoch; zero: none.
	Token      [32]byte
	TokenUntil int64

	Voter bool // filled in from the configuration
}

// clone copies the strings, which are part of a log entry.
func (m Member) clone() Member {
	m.Peer, m.Client, m.HTTP = strings.Clone(m.Peer), strings.Clone(m.Client), strings.Clone(m.HTTP)
	m.Addr = strings.Clone(m.Addr)
	m.Version, m.Commit = strings.Clone(m.Version), strings.Clone(m.Commit)
	return m
}

// shown is the part of a member that /zookeeper/config shows.
func (m Member) shown() Member {
	m.ID, m.Voter = 0, false
	m.Version, m.Commit, m.MinLevel, m.MaxLevel = "", "", 0, 0
	return m
}

// append encodes a member as published, without its id and Voter.
func (m *Member) append(b []byte) []byte {
	b = appendString(appendString(appendString(b, m.Peer), m.Client), m.HTTP)
	b = append(appendString(b, m.Addr), flag(m.Vote))
	b = appendString(appendString(b, m.Version), m.Commit)
	b = appendUint(appendUint(b, uint64(m.MinLevel)), uint64(m.MaxLevel))
	b = append(append(b, m.Key[:]...), m.Token[:]...)
	return appendInt(b, m.TokenUntil)
}

// memberBytes is the least size of a member in a snapshot.
const memberBytes = 1 + 4 + 1 + 2 + 2 + 32 + 32 + 1 + 1

func readMember(id ServerID, r *reader) Member {
	m := Member{
		ID: id, Peer: r.string(), Client: r.string(), HTTP: r.string(),
		Addr: r.string(), Vote: r.byte() == 1, Version: r.string(), Commit: r.string(),
		MinLevel: Level(r.uint()), MaxLevel: Level(r.uint()),
	}
	copy(m.Key[:], r.take(len(m.Key)))
	copy(m.Token[:], r.take(len(m.Token)))
	m.TokenUntil = r.int()
	return m
}
