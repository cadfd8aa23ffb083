package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/zk-lite/zk-lite/server"
)

// Server is what the door needs of *server.Server.
type Server interface {
	Status() server.Status
	Serving() bool
	Config() server.Config
}

// Config is what a Door is made of.
type Config struct {
	Version string // zk-lite's own
	Logger  *slog.Logger
}

// Door serves HTTP.
type Door struct {
	srv  Server
	cfg  Config
	http *http.Server
}

// Bounds of what a client may send and how long it may take.
const (
	headerTimeout = 10 * time.Second
	headerBytes   = 64 << 10
)

// New returns a Door that is not served yet.
func New(srv Server, cfg Config) *Door {
	d := &Door{srv: srv, cfg: cfg}
	r := mux.NewRouter()
	r.HandleFunc("/livez", d.livez).Methods(http.MethodGet, http.MethodHead)
	r.HandleFunc("/readyz", d.readyz).Methods(http.MethodGet, http.MethodHead)
	d.http = &http.Server{
		Handler: r, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: headerBytes,
		IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	return d
}

// Serve answers requests until Shutdown.
func (d *Door) Serve(l net.Listener) error {
	if err := d.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting and waits for requests in progress until ctx ends.
func (d *Door) Shutdown(ctx context.Context) error { return d.http.Shutdown(ctx) }

// livez says that the process answers.
func (d *Door) livez(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"status": "ok", "version": d.cfg.Version})
}

// readyz says whether this server serves clients: whether it knows of a leader
// with a majority.
func (d *Door) readyz(w http.ResponseWriter, _ *http.Request) {
	s := d.srv.Status()
	body := map[string]any{
		"status": "ok", "server": d.srv.Config().ID, "role": s.Role, "leader": s.Leader, "term": s.Term,
	}
	code := http.StatusOK
	if !d.srv.Serving() {
		code, body["status"] = http.StatusServiceUnavailable, "no leader with a majority is known"
		w.Header().Set("Retry-After", "1")
	}
	answer(w, code, body)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}
