package fence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/internal/durable"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/znode"
)

// Host is a server of ZooKeeper that was stopped, by its directories as zoo.cfg names them.
type Host struct {
	DataDir string
	LogDir  string // dataLogDir; empty: DataDir
}

// The names that a server needs, and what fencing makes of them.
const (
	filesName   = "version-2"
	idName      = "myid"
	fenced      = ".fenced"
	receiptName = "fence.receipt"
)

// barrier is the text of the plain file that takes the place of version-2. A server of a quorum does not start without
// myid, but containers write that file again when they start; and no server starts where it can make no log.
const barrier = "This ZooKeeper server was fenced: its data were taken over by zk-lite, or are about to be.\n" +
	"They are in version-2" + fenced + ". To undo it: zk-lite takeover unfence --data-dir DIR\n"

// ErrRunning reports that the server's process runs.
var ErrRunning = errors.New("the server runs")

// Fence keeps the server from starting, and returns the receipt, in which its files are compared with a Point of the
// mirror. To repeat it does no harm, and completes what a crash has interrupted; for the same Point it returns the same
// receipt.
//
// The files are moved first, so nothing can change them afterwards: a server without an open log could make none. If
// the server then has a file open all the same, or its files cannot prove what they hold, they are moved back.
//
// Errors: ErrRunning; DifferenceError; those of datadir.Since; of the file system. Then the server can start, unless
// it was fenced before.
func (h Host) Fence(at Point) (r *Receipt, err error) {
	if err := h.find(); err != nil {
		return nil, err
	}
	if old, err := h.receipt(); err == nil && old.Check() == nil && h.isFenced() && old.After == at.After &&
		old.Digest == at.Digest && slices.Equal(old.Voters, at.Voters) {
		return old, nil
	}
	if err := h.refuseRunning(); err != nil {
		return nil, err
	}
	was := h.isFenced()
	defer func() {
		if err != nil && !was {
			err = errors.Join(err, h.Unfence())
		}
	}()
	if err := h.move(); err != nil {
		return nil, err
	}
	if err := h.refuseRunning(); err != nil { // it was started meanwhile
		return nil, err
	}
	if r, err = h.read(at); err != nil {
		return nil, err
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return r, durable.WriteFile(filepath.Join(h.DataDir, receiptName), b)
}

// Unfence lets the server start again. To repeat it does no harm, and completes what was interrupted.
//
// Errors: there is a version-2, or a myid, which someone has made meanwhile; of the file system.
func (h Host) Unfence() error {
	if err := h.find(); err != nil {
		return err
	}
	for _, dir := range h.dirs() {
		if err := h.moveBack(dir); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(h.DataDir, receiptName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	id := filepath.Join(h.DataDir, idName)
	if !exists(id + fenced) {
		return nil
	}
	return durable.Rename(id+fenced, id)
}

// moveBack moves version-2 of a directory back.
func (h Host) moveBack(dir string) error {
	files := filepath.Join(dir, filesName)
	if !exists(files + fenced) {
		return nil
	}
	b, err := os.ReadFile(files)
	switch {
	case err == nil && string(b) == barrier:
		err = os.Remove(files)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	default:
		err = fmt.Errorf("%s is there, and %s, too: keep the one that holds the data as %s, and move the other away",
			files, files+fenced, files)
	}
	if err != nil {
		return err
	}
	return durable.Rename(files+fenced, files)
}

// find checks the directories, and completes h.
func (h *Host) find() (err error) {
	if h.LogDir == "" {
		h.LogDir = h.DataDir
	}
	for _, dir := range []*string{&h.DataDir, &h.LogDir} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
		files := filepath.Join(*dir, filesName)
		info, err := os.Stat(files)
		switch {
		case exists(files + fenced):
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s has no %s: name the directory that zoo.cfg has as dataDir (--data-dir) or "+
				"dataLogDir (--log-dir)", *dir, filesName)
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is no directory, and no %s is beside it: where are the server's files?", files,
				filesName+fenced)
		}
	}
	return nil
}

// dirs are the directories that hold a version-2, each once.
func (h Host) dirs() []string {
	return slices.Compact([]string{h.LogDir, h.DataDir})
}

// isFenced reports whether all is moved.
func (h Host) isFenced() bool {
	for _, dir := range h.dirs() {
		files := filepath.Join(dir, filesName)
		if b, err := os.ReadFile(files); err != nil || string(b) != barrier || !exists(files+fenced) {
			return false
		}
	}
	return !exists(filepath.Join(h.DataDir, idName))
}

// move moves what a server needs, in an order in which it cannot start with a part: first myid, then the logs.
func (h Host) move() error {
	if id := filepath.Join(h.DataDir, idName); exists(id) {
		if err := durable.Rename(id, id+fenced); err != nil {
			return err
		}
	}
	for _, dir := range h.dirs() {
		files := filepath.Join(dir, filesName)
		info, err := os.Lstat(files)
		if err == nil && (info.IsDir() || info.Mode()&fs.ModeSymlink != 0) {
			if exists(files + fenced) {
				return fmt.Errorf("%s is there, and %s, too: move the one away that does not hold the data", files,
					files+fenced)
			}
			err = durable.Rename(files, files+fenced)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := durable.WriteFile(files, []byte(barrier)); err != nil {
			return err
		}
	}
	return nil
}

// DifferenceError reports that the server's znodes were not those of the mirror.
type DifferenceError struct {
	Server int64
	After  znode.Zxid
	Digest Digest // of the mirror's
	End    znode.Zxid
}

// Error says where, and what to do.
func (e *DifferenceError) Error() string {
	return fmt.Sprintf("after transaction %v the znodes of server %d do not have the digest %v, as the mirror's "+
		"had: its history is not the one that was mirrored (its last transaction is %v). The server can start as "+
		"before. Find out which of them is right: compare the voters by the command hash, or their files by zk-lite "+
		"inspect", e.After, e.Server, e.Digest, e.End)
}

// read reads what was moved.
func (h Host) read(at Point) (*Receipt, error) {
	r := &Receipt{Format: format, Point: at, DataDir: h.DataDir, LogDir: h.LogDir,
		Time: time.Now().UTC().Truncate(time.Second)}
	r.Host, _ = os.Hostname() // for the reader only
	data, logs := filepath.Join(h.DataDir, filesName+fenced), filepath.Join(h.LogDir, filesName+fenced)
	if h.LogDir == h.DataDir {
		logs = ""
	}
	p, err := datadir.Since(data, logs, znode.Zxid(at.After), uint64(at.Digest), MaxTail)
	switch {
	case errors.Is(err, datadir.ErrNewer):
		return nil, fmt.Errorf("%w; make a plan now (zk-lite takeover --plan), and use its command", err)
	case err != nil:
		return nil, err
	}
	if len(p.Report.Logs) == 0 { // what it has acknowledged is in logs
		return nil, fmt.Errorf("%s has no log.*, the files of what a server has acknowledged. If zoo.cfg has another "+
			"dataLogDir, name that (--log-dir). If not, this server has written nothing since it was sent a "+
			"snapshot, and proves nothing: do without its receipt, if there are those of a majority, and see that "+
			"it never starts again; or start ZooKeeper, write something to it, and make a new plan", h.LogDir)
	}
	if r.Server, err = h.id(); err != nil {
		return nil, err
	}
	if p.Reached && !p.Equal {
		return nil, &DifferenceError{r.Server, znode.Zxid(at.After), at.Digest, p.Zxid}
	}
	r.Zxid, r.End, r.Compared, r.Tail = Zxid(p.Zxid), Digest(p.Digest), p.Reached, p.Tail
	if e := p.Report.CurrentEpoch; e != nil {
		r.Epoch = *e
	}
	if e := p.Report.AcceptedEpoch; e != nil {
		r.Accepted = *e
	}
	r.Seal()
	return r, nil
}

// id reads the server's number, 0 without one: a standalone server needs none.
func (h Host) id() (int64, error) {
	b, err := os.ReadFile(filepath.Join(h.DataDir, idName+fenced))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %.40q is no number", filepath.Join(h.DataDir, idName+fenced), b)
	}
	return n, nil
}

// receipt reads the one that was made before.
func (h Host) receipt() (*Receipt, error) {
	b, err := os.ReadFile(filepath.Join(h.DataDir, receiptName))
	if err != nil {
		return nil, err
	}
	r := new(Receipt)
	return r, json.Unmarshal(b, r)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
