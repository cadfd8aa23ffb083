package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/zk-lite/zk-lite/client"
)

// maxBody bounds a request and an answer: each byte of a text has up to six in JSON.
const maxBody = maxBatch * (6*maxMessage + 512)

// ask makes a request of a node: JSON there and, if out is not nil, back.
func ask(ctx context.Context, method, address, what string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+address+"/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %s", address, response.Status, bytes.TrimSpace(answer))
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}

// ServeHTTP answers publishers (POST), subscribers (GET) and primaries (PUT).
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, err := n.find(r.URL.Path[1:])
	var answer []Message
	if err == nil {
		answer, err = n.answer(t, w, r)
	}
	var disk diskError
	switch {
	case errors.As(err, &disk):
		n.end(err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case errors.Is(err, errNotHere) || errors.Is(err, errStale):
		n.lookAgain() // perhaps the backup has failed
		http.Error(w, err.Error(), http.StatusMisdirectedRequest)
	case errors.Is(err, errFull):
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		_ = json.NewEncoder(w).Encode(answer) // who is gone asks again
	}
}

func (n *Node) answer(t *topic, w http.ResponseWriter, r *http.Request) ([]Message, error) {
	var messages []Message
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&messages); err != nil {
			return nil, fmt.Errorf("want a list of messages in JSON: %w", err)
		}
	}
	if r.Method == http.MethodPost {
		if len(messages) != 1 || !messages[0].valid() {
			return nil, fmt.Errorf("want one message: From, Number from 1, Text of at most %d bytes", maxMessage)
		}
		return nil, t.publish(messages[0])
	}
	after, err := strconv.Atoi(r.FormValue("after"))
	if err != nil || after < 0 {
		return nil, errors.New("after= is to be the id of a message, or 0")
	}
	switch r.Method {
	case http.MethodGet:
		return t.read(after)
	case http.MethodPut:
		epoch, err := strconv.ParseInt(r.FormValue("epoch"), 10, 32)
		if err != nil {
			return nil, errors.New("epoch= is to be the version of the topic's znode")
		}
		return nil, t.receive(client.Version(epoch), after, messages)
	}
	return nil, errors.New("want GET, POST or PUT")
}
