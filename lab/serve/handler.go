package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/page"
	"github.com/zk-lite/zk-lite/lab/trace"
)

// atOnce is how many runs are computed at a time: each may hold a processor for two
// seconds, and some 40 MB of memory.
const atOnce = 2

// maxBody bounds a request: the words of a run in JSON, each of whose bytes may be
// written as six.
const maxBody = 6*page.MaxBytes + 4*page.MaxWords

// experimentTime bounds an experiment on real servers: some sessions have to expire.
const experimentTime = 25 * time.Second

// experiments is the command that runs on real servers.
const experiments = "ensemble"

// Options connects the page to packages that the lab must not import.
type Options struct {
	// Ensemble performs an experiment on running servers. Nil means that there are none.
	Ensemble func(ctx context.Context, words []string) (trace.Trace, error)
}

// Handler answers the page's requests.
type Handler struct {
	options Options
	mux     *http.ServeMux
	slots   chan struct{} // for runs
	real    chan struct{} // for the one experiment
}

// New returns a handler.
func New(o Options) *Handler {
	h := &Handler{options: o, mux: http.NewServeMux(), slots: make(chan struct{}, atOnce), real: make(chan struct{}, 1)}
	h.mux.Handle("GET /", http.FileServerFS(page.Files()))
	h.mux.HandleFunc("GET /api/catalogue", h.catalogue)
	h.mux.HandleFunc("POST /api/run", h.run)
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", page.Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
	if !knownHost(r.Host) {
		refuse(w, http.StatusForbidden,
			fmt.Errorf("this server is for its own machine, and is not known as %q: ask for localhost or 127.0.0.1",
				r.Host))
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) {
		refuse(w, http.StatusForbidden, fmt.Errorf("pages of %q may not call this server", origin))
		return
	}
	h.mux.ServeHTTP(w, r)
}

// knownHost reports whether a Host header can only have been meant for this server: an address,
// which no one can redirect, or a name that means this machine (RFC 6761, 6.3).
func knownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

func (h *Handler) catalogue(w http.ResponseWriter, _ *http.Request) {
	data, err := page.Catalogue(h.options.Ensemble != nil)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	write(w, data)
}

func (h *Handler) run(w http.ResponseWriter, r *http.Request) {
	words, ok := readWords(w, r)
	if !ok {
		return
	}
	if len(words) > 0 && words[0] == experiments {
		h.experiment(w, r, words)
		return
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-r.Context().Done():
		return // no one waits for the answer
	}
	t, err := page.Run(words)
	answer(w, t, err)
}

// experiment runs one on real servers.
func (h *Handler) experiment(w http.ResponseWriter, r *http.Request, words []string) {
	if h.options.Ensemble == nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("%s: no servers are known here; start zk-lite dev, "+
			"and the page with zk-lite lab serve --servers 127.0.0.1:2181", experiments))
		return
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), experimentTime,
		fmt.Errorf("not done after %v", experimentTime))
	defer cancel()
	select {
	case h.real <- struct{}{}:
		defer func() { <-h.real }()
	case <-ctx.Done():
		refuse(w, http.StatusServiceUnavailable, errors.New("another experiment is going on"))
		return
	}
	t, err := h.options.Ensemble(ctx, words)
	answer(w, t, err)
}

// readWords reads the words of a command line, or refuses the request.
func readWords(w http.ResponseWriter, r *http.Request) (words []string, ok bool) {
	// A form of another site can send text without asking first, but not this type.
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, fmt.Errorf("content type %q: want application/json", kind))
		return nil, false
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("reading the request: %w", err))
		return nil, false
	}
	if err := json.Unmarshal(data, &words); err != nil {
		refuse(w, http.StatusBadRequest,
			fmt.Errorf("the request: want the words of a command line as a JSON list: %w", err))
		return nil, false
	}
	return words, true
}

func answer(w http.ResponseWriter, t trace.Trace, err error) {
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	data, err := json.Marshal(t)
	if err != nil {
		refuse(w, http.StatusInternalServerError, fmt.Errorf("encoding the run: %w", err))
		return
	}
	write(w, data)
}

func write(w http.ResponseWriter, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // a browser that has disconnected needs no answer
}

// refuse answers with an error, as {"error": "..."}.
func refuse(w http.ResponseWriter, status int, err error) {
	data, encoding := json.Marshal(map[string]string{"error": err.Error()})
	if encoding != nil {
		data = []byte(`{"error":"the error cannot be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
