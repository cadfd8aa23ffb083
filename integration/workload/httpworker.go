package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	httpAtMost = 2 * time.Second
	// httpTries is how often a write without a clear answer is repeated, with its key.
	httpTries = 4
)

// httpWorker is a client of the HTTP port. Every request is a client of its own in
// the history, as nothing ties it to the one before. Writes carry an idempotency
// key and are repeated elsewhere when it is not clear whether they have happened.
type httpWorker struct {
	w      *Window
	id     int
	rng    *rand.Rand
	client *http.Client
	used   int
}

// document has the parts of an answer that matter here.
type document struct {
	Data  string `json:"data"`
	Code  int32  `json:"code"`
	Stat  *stat  `json:"stat"`
	Error string `json:"error"`
}

type stat struct {
	Czxid   string        `json:"czxid"`
	Mzxid   string        `json:"mzxid"`
	Version znode.Version `json:"version"`
}

func (k *httpWorker) run() {
	for !k.w.Stopping() {
		k.request()
		k.w.Pause(workerPause)
	}
	k.client.CloseIdleConnections()
}

func (k *httpWorker) request() {
	k.used++
	slot := int(k.w.rec.since(time.Now()) / slotLength)
	path := fmt.Sprintf("%s/reg/%d-%d", k.w.root, slot, k.rng.IntN(registers))
	op := check.Op{Client: k.id*1_000_000 + k.used, Conn: k.w.rec.connID(), Path: path,
		Call: k.w.rec.since(time.Now()), Value: fmt.Sprintf("h%d-%d", k.id, k.used)}
	switch k.rng.IntN(3) {
	case 0:
		op.Kind = check.Create
		k.write(&op, http.MethodPost, "/v1/znodes"+path)
	case 1:
		op.Kind, op.Version = check.Set, znode.AnyVersion
		k.write(&op, http.MethodPut, "/v1/znodes"+path)
	default:
		op.Kind, op.Value, op.Synced = check.Get, "", true
		k.do(&op, http.MethodGet, "/v1/znodes"+path+"?consistency=linearizable", "")
	}
	if op.Outcome == check.Unknown {
		op.Return = k.w.rec.since(time.Now())
	}
	k.w.rec.add(op)
}

func (k *httpWorker) write(op *check.Op, method, url string) {
	key := op.Value + "-" + k.w.root[1:]
	for try := range httpTries {
		k.do(op, method, url, key)
		if try > 0 && (op.Code == znode.ErrSystem || op.Code == znode.ErrThrottled) {
			op.Outcome = check.Unknown // this try has done nothing, but one before may have
		}
		if op.Outcome != check.Unknown {
			return
		}
		k.w.Pause(workerPause)
	}
}

// do asks some server once.
func (k *httpWorker) do(op *check.Op, method, url, key string) {
	op.Outcome, op.Code = check.Unknown, znode.OK
	s := k.w.e.Servers()[k.rng.IntN(len(k.w.e.Servers()))]
	op.Server = s.ID
	ctx, cancel := context.WithTimeout(context.Background(), httpAtMost)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, "http://"+s.HTTPAddr()+url,
		strings.NewReader(op.Value))
	if err != nil {
		panic(err)
	}
	if key != "" {
		q.Header.Set("Idempotency-Key", key)
	}
	r, err := k.client.Do(q)
	if err != nil {
		return
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	var doc document
	if r.StatusCode == http.StatusInsufficientStorage {
		op.Outcome, op.Code, op.Return = check.Failed, znode.ErrSystem, k.w.rec.since(time.Now())
		return
	}
	if err != nil || r.StatusCode >= 500 || json.NewDecoder(bytes.NewReader(body)).Decode(&doc) != nil {
		return
	}
	op.Return = k.w.rec.since(time.Now())
	if r.StatusCode >= 400 {
		op.Outcome, op.Code = check.Failed, znode.Error(doc.Code)
		return
	}
	op.Outcome = check.OK
	switch op.Kind {
	case check.Create:
		op.Created, op.Zxid = op.Path, zxidOf(doc.Stat.Czxid)
	case check.Set:
		op.Zxid = zxidOf(doc.Stat.Mzxid)
	default:
		op.Data, op.Zxid = doc.Data, zxidOf(r.Header.Get("Zk-Zxid"))
	}
	op.Stat = znode.Stat{Mzxid: zxidOf(doc.Stat.Mzxid), Version: doc.Stat.Version}
}

func zxidOf(text string) znode.Zxid {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return 0
	}
	return znode.Zxid(n)
}
