package httpload

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/bench/load"
)

// API is the dialect of a kind of server.
type API interface {
	// call is the request of a Get, Set or Create below a prefix.
	call(prefix string, c load.Call) request
	// prepare creates the keys, or their parents; clear deletes all.
	prepare(ctx context.Context, c *conn, cfg *load.Config) error
	clear(ctx context.Context, c *conn, prefix string) error
	// owner opens a session, or whatever a lock belongs to in this API.
	owner(ctx context.Context, c *conn) (string, error)
	// lock acquires a lock and returns the request that releases it.
	lock(ctx context.Context, c *conn, owner, path string) (request, error)
	// disown ends what owner has opened.
	disown(ctx context.Context, c *conn, owner string) error
	// stream is the request for the changes of a key; changes counts the changes in a line of
	// the stream.
	stream(prefix string, key int) request
	changes(line []byte) int
}

func keyPath(prefix string, key int) string { return prefix + "/k" + strconv.Itoa(key) }

// path is what a Get or Set is about.
func path(prefix string, c load.Call) string {
	if c.New != "" {
		return prefix + "/" + c.New
	}
	return keyPath(prefix, c.Key)
}

// ZKLite is zk-lite's own API.
type ZKLite struct{}

const znodes = "/v1/znodes"

func (ZKLite) call(prefix string, c load.Call) request {
	switch c.Op {
	case load.Get:
		return request{method: http.MethodGet, target: znodes + path(prefix, c)}
	case load.Set:
		return request{method: http.MethodPut, target: znodes + path(prefix, c), body: c.Data}
	}
	return request{method: http.MethodPost, target: znodes + prefix + "/" + c.New, body: c.Data}
}

func (z ZKLite) prepare(ctx context.Context, c *conn, cfg *load.Config) error {
	_, err := c.do(ctx, &request{method: http.MethodPut, body: []byte{},
		target: znodes + cfg.Prefix + "?create=true&parents=true"})
	for key := 0; key < cfg.Keys && err == nil; key++ {
		_, err = c.do(ctx, &request{method: http.MethodPut, body: make([]byte, cfg.ValueSize),
			target: znodes + keyPath(cfg.Prefix, key) + "?create=true"})
	}
	return err
}

// clearMost is below the bound of znodes that one recursive delete takes.
const clearMost = 500

func (z ZKLite) clear(ctx context.Context, c *conn, prefix string) error {
	for {
		body, err := c.do(ctx, &request{method: http.MethodGet,
			target: znodes + prefix + "?children&limit=" + strconv.Itoa(clearMost)})
		if missing(err) {
			return nil
		}
		var list struct{ Children []string }
		if err == nil {
			err = json.Unmarshal(body, &list)
		}
		if err != nil {
			return err
		}
		for _, name := range append(list.Children, "") {
			if name == "" && len(list.Children) > 0 {
				break // the prefix itself when it is empty
			}
			target := strings.TrimSuffix(znodes+prefix+"/"+name, "/") + "?recursive=true"
			_, err := c.do(ctx, &request{method: http.MethodDelete, target: target})
			if err != nil && !missing(err) {
				return err
			}
		}
	}
}

// missing reports a 404.
func missing(err error) bool {
	var e *StatusError
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

func (ZKLite) owner(ctx context.Context, c *conn) (string, error) {
	body, err := c.do(ctx, &request{method: http.MethodPost, target: "/v1/sessions",
		body: []byte(`{"timeout":"30s"}`)})
	if err != nil {
		return "", err
	}
	var s struct{ ID, Secret string }
	if err := json.Unmarshal(body, &s); err != nil {
		return "", fmt.Errorf("a session: %w", err)
	}
	return "Zk-Session: " + s.ID + "." + s.Secret + "\r\n", nil
}

func (ZKLite) disown(ctx context.Context, c *conn, owner string) error {
	id, _, _ := strings.Cut(strings.TrimPrefix(owner, "Zk-Session: "), ".")
	_, err := c.do(ctx, &request{method: http.MethodDelete, target: "/v1/sessions/" + id, header: owner})
	return err
}

func (ZKLite) lock(ctx context.Context, c *conn, owner, path string) (request, error) {
	target := "/v1/locks" + path
	body, err := c.do(ctx, &request{method: http.MethodPost, target: target + "?wait=20s", header: owner,
		body: []byte{}})
	if err != nil {
		return request{}, err
	}
	var grant struct {
		Ticket       string `json:"ticket"`
		FencingToken string `json:"fencing_token"`
	}
	if err := json.Unmarshal(body, &grant); err != nil {
		return request{}, fmt.Errorf("a lock: %w", err)
	}
	if grant.FencingToken == "" {
		return request{}, fmt.Errorf("a lock: not granted: %s", body)
	}
	return request{method: http.MethodDelete, target: target + "/" + grant.Ticket, header: owner}, nil
}

func (ZKLite) stream(prefix string, key int) request {
	return request{method: http.MethodGet, target: "/v1/watches" + keyPath(prefix, key) + "?kind=persistent",
		header: "Accept: text/event-stream\r\n"}
}

func (ZKLite) changes(line []byte) int {
	if bytes.Equal(line, []byte("event: changed")) {
		return 1
	}
	return 0
}

// Etcd is the JSON gateway of etcd, API version 3.
type Etcd struct{}

func post(target, body string) request {
	return request{method: http.MethodPost, target: target, body: []byte(body)}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func (Etcd) call(prefix string, c load.Call) request {
	value := base64.StdEncoding.EncodeToString(c.Data)
	switch c.Op {
	case load.Get:
		return post("/v3/kv/range", `{"serializable":true,"key":"`+b64(path(prefix, c))+`"}`)
	case load.Set:
		return post("/v3/kv/put", `{"key":"`+b64(path(prefix, c))+`","value":"`+value+`"}`)
	}
	key := b64(prefix + "/" + c.New) // only if it does not exist, as create
	return post("/v3/kv/txn", `{"compare":[{"key":"`+key+`","target":"VERSION","version":"0"}],`+
		`"success":[{"request_put":{"key":"`+key+`","value":"`+value+`"}}]}`)
}

func (e Etcd) prepare(ctx context.Context, c *conn, cfg *load.Config) error {
	for key := range cfg.Keys {
		q := e.call(cfg.Prefix, load.Call{Op: load.Set, Key: key, Data: make([]byte, cfg.ValueSize)})
		if _, err := c.do(ctx, &q); err != nil {
			return err
		}
	}
	return nil
}

func (Etcd) clear(ctx context.Context, c *conn, prefix string) error {
	// "0" follows "/", so this is all that begins with the prefix and a slash.
	q := post("/v3/kv/deleterange", `{"key":"`+b64(prefix+"/")+`","range_end":"`+b64(prefix+"0")+`"}`)
	_, err := c.do(ctx, &q)
	return err
}

func (Etcd) owner(ctx context.Context, c *conn) (string, error) {
	q := post("/v3/lease/grant", `{"TTL":"600"}`)
	body, err := c.do(ctx, &q)
	if err != nil {
		return "", err
	}
	var lease struct{ ID string }
	if err := json.Unmarshal(body, &lease); err != nil {
		return "", fmt.Errorf("a lease: %w", err)
	}
	return lease.ID, nil
}

func (Etcd) disown(ctx context.Context, c *conn, owner string) error {
	q := post("/v3/lease/revoke", `{"ID":"`+owner+`"}`)
	_, err := c.do(ctx, &q)
	return err
}

func (Etcd) lock(ctx context.Context, c *conn, owner, path string) (request, error) {
	q := post("/v3/lock/lock", `{"name":"`+b64(path)+`","lease":"`+owner+`"}`)
	body, err := c.do(ctx, &q)
	if err != nil {
		return request{}, err
	}
	var grant struct{ Key string }
	if err := json.Unmarshal(body, &grant); err != nil || grant.Key == "" {
		return request{}, fmt.Errorf("a lock: %q, %w", body, err)
	}
	return post("/v3/lock/unlock", `{"key":"`+grant.Key+`"}`), nil
}

func (Etcd) stream(prefix string, key int) request {
	return post("/v3/watch", `{"create_request":{"key":"`+b64(keyPath(prefix, key))+`"}}`)
}

func (Etcd) changes(line []byte) int { return bytes.Count(line, []byte(`"mod_revision":`)) }
