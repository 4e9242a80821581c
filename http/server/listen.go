package server

import (
	"log/slog"
	"net/http"
	"time"
)

const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	headerSize = 64 << 10
)

// Listening is a server for h. It bounds how long a request's header may take and how long a connection may be idle,
// and nothing else: a client's work takes the time it takes.
func Listening(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerSize,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
