// Package peerkeys lets the servers of an ensemble authenticate each other. A server makes its key pair when it
// first starts (own.go) and presents it in TLS 1.3 (tls.go); the table binds keys to servers (table.go). The
// package learns the keys of the others from its callers: it decides no membership, and reads nothing on a
// connection but TLS.
//
// Run is the one goroutine; it writes the table to disk and has connections closed whose key is no longer bound.
// There are two locks: Keys.mu, under which nothing is called, and Keys.saving, which is held during a write and
// taken first. All methods are usable on a nil *Keys, which knows no server and rejects none: then servers are
// believed.
package peerkeys

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/durable"
)

// Key names a server's public key: the SHA-256 of its SubjectPublicKeyInfo (RFC 5280, 4.1.2.7).
type Key [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler: hexadecimal.
func (k Key) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An error shows the text.
func (k *Key) UnmarshalText(text []byte) error {
	if b, err := hex.DecodeString(string(text)); err == nil && len(b) == len(k) {
		copy(k[:], b)
		return nil
	}
	return fmt.Errorf("key %.80q is not %d hexadecimal digits", text, 2*len(k))
}

// Short returns the beginning of the key, for people who compare two.
func (k Key) Short() string { return hex.EncodeToString(k[:8]) }

// Table records which key is bound to which server.
type Table struct {
	Index uint64                 `json:"index"` // of the log entry that it reflects; 0: of the first start
	Keys  map[state.ServerID]Key `json:"keys"`
	// Removed has the last keys of removed servers, which may ask whether they were removed.
	Removed map[state.ServerID]Key `json:"removed,omitempty"`
}

// saved is the file format of a Table.
type saved struct {
	Version int `json:"version"` // savedVersion
	Table
}

const savedVersion = 1

// check returns an error for a table that cannot be right.
func (t *Table) check() error {
	all := maps.Clone(t.Removed)
	if all == nil {
		all = map[state.ServerID]Key{}
	}
	maps.Copy(all, t.Keys)
	for id, key := range all {
		if id > state.MaxServerID || key == (Key{}) {
			return fmt.Errorf("the table of keys has key %s for server %d", key.Short(), uint64(id))
		}
	}
	return nil
}

const (
	ownFile   = "peer.key"
	tableFile = "peers.json"
)

// Config configures Open.
type Config struct {
	Dir      string // of peer.key and peers.json; created if missing
	Off      bool   // this server connects to others without TLS
	PlainToo bool   // others may connect with TLS or without
	// SecretFile has the join secret of the ensemble, or a one-time token; empty: none. It is read at each use.
	SecretFile string
	Logger     *slog.Logger
}

// Keys are a server's own key and those of the others.
type Keys struct {
	cfg  Config
	own  Key
	tls  tlsConfigs
	met  chan struct{} // capacity 1: an unknown key has been shown
	wake chan struct{} // capacity 1: Run has something to do

	saving sync.Mutex // held during a write of the table; taken before mu

	mu      sync.Mutex // protects the fields below
	member  bool       // this server belongs to an ensemble
	table   Table
	dirty   bool                     // the table is newer than its file
	tokens  map[state.ServerID]token // not used yet
	changed map[state.ServerID]bool  // servers whose connections Run has to end
	shown   map[state.ServerID]Key   // the keys that servers have shown when they were called
}

// token is a one-time token's digest.
type token struct {
	sum   [32]byte
	until time.Time
}

// Open reads a server's keys, and makes its own if it has none. An error names the file that cannot be read or
// written.
func Open(c Config) (*Keys, error) {
	own, err := loadOwn(c.Dir)
	if err != nil {
		return nil, err
	}
	cert, key, err := certificate(own)
	if err != nil {
		return nil, err
	}
	k := &Keys{
		cfg: c, own: key, met: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		changed: map[state.ServerID]bool{},
	}
	k.tls = k.newTLS(cert)
	if _, _, _, err := k.secret(); err != nil {
		return nil, err
	}
	path := filepath.Join(c.Dir, tableFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return k, nil
	case err != nil:
		return nil, fmt.Errorf("reading the keys of the other servers: %w", err)
	}
	var file saved
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s, the keys of the other servers, is damaged: %w; take the file of another server",
			path, err)
	}
	if file.Version != savedVersion {
		return nil, fmt.Errorf("%s has version %d, and this release reads version %d: start the release that wrote it",
			path, file.Version, savedVersion)
	}
	k.table = file.Table
	if err := k.table.check(); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; take the file of another server", path, err)
	}
	return k, nil
}

// Own is this server's key; zero on nil.
func (k *Keys) Own() (own Key) {
	if k != nil {
		own = k.own
	}
	return own
}

// Tokens reports whether a server's key must be bound before the server can take part.
func (k *Keys) Tokens() bool { return k != nil && !k.cfg.Off }

// SetMember notes that this server belongs to an ensemble: from now on keys that are bound to no server are refused.
func (k *Keys) SetMember() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.member = true
	k.mu.Unlock()
}

// Table returns the table, not to be modified; nil on nil.
func (k *Keys) Table() *Table {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.table // maps are replaced, never changed
	return &t
}

// Update replaces the table by another server's, and returns when it is on disk. A member keeps its own if the other is
// older. Errors: an invalid table; those of the file system.
func (k *Keys) Update(t *Table) error {
	if err := t.check(); err != nil {
		return err
	}
	k.mu.Lock()
	if !k.member || t.Index >= k.table.Index {
		k.setLocked(*t)
	}
	k.mu.Unlock()
	k.signal(k.wake)
	return k.save()
}

// Applied takes the table from the state machine, as it is after the entry with this index. The goroutine that applies
// the log calls it; it does not block.
func (k *Keys) Applied(index uint64, members map[state.ServerID]state.Member, configured map[state.ServerID]bool) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if index < k.table.Index {
		return
	}
	next := Table{Index: index, Keys: map[state.ServerID]Key{}, Removed: map[state.ServerID]Key{}}
	maps.Copy(next.Removed, k.table.Removed)
	for id, key := range k.table.Keys {
		if _, in := configured[id]; !in {
			next.Removed[id] = key
		}
		// A server of the first start that has not published its key yet. A server that was added later may have
		// had another key before.
		if _, in := configured[id]; in && members[id].Addr == "" {
			next.Keys[id] = key
		}
	}
	k.tokens = nil
	for id, m := range members {
		if m.Key != (Key{}) {
			next.Keys[id] = m.Key
		}
		if m.Token != (Key{}) {
			if k.tokens == nil {
				k.tokens = map[state.ServerID]token{}
			}
			k.tokens[id] = token{m.Token, time.UnixMilli(m.TokenUntil)}
		}
	}
	for id := range next.Keys {
		delete(next.Removed, id)
	}
	k.setLocked(next)
	k.signal(k.wake)
}

// setLocked replaces the table.
func (k *Keys) setLocked(next Table) {
	k.dirty = true
	for id, key := range k.table.Keys {
		if next.Keys[id] != key {
			k.changed[id] = true
		}
	}
	k.table = next
}

func (k *Keys) signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// save writes the table, if it is newer than its file.
func (k *Keys) save() error {
	k.saving.Lock()
	defer k.saving.Unlock()
	k.mu.Lock()
	t, dirty := k.table, k.dirty
	k.mu.Unlock()
	if !dirty {
		return nil
	}
	text, err := json.Marshal(&saved{savedVersion, t})
	if err == nil {
		err = durable.WriteFile(filepath.Join(k.cfg.Dir, tableFile), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the keys of the other servers: %w", err)
	}
	k.mu.Lock()
	k.dirty = k.table.Index != t.Index || !maps.Equal(k.table.Keys, t.Keys)
	k.mu.Unlock()
	return nil
}

// Run keeps the file up to date, and calls cut to end the connections of servers whose key is no longer bound, until
// ctx ends.
func (k *Keys) Run(ctx context.Context, cut func(state.ServerID)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		}
		k.mu.Lock()
		changed := k.changed
		k.changed = map[state.ServerID]bool{}
		k.mu.Unlock()
		for id := range changed {
			cut(id)
		}
		if err := k.save(); err != nil {
			k.cfg.Logger.Error("this server may not know the others after a restart", "error", err)
		}
	}
}

// Met returns a channel that receives after a server has shown a key that is not bound to it: the table may be out of
// date. On nil the channel is nil.
func (k *Keys) Met() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.met
}
