package problem

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// Guard makes a panic of next one log line and a 500. When the answer had begun the connection is cut instead, so
// that no client takes half an answer for a whole one. http.ErrAbortHandler passes through.
func Guard(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		watched := &begun{ResponseWriter: w}
		defer func() {
			if cause := recover(); cause != nil {
				watched.settle(log, cause)
			}
		}()
		next.ServeHTTP(watched, r)
	})
}

// begun is a ResponseWriter that knows whether its answer has begun.
type begun struct {
	http.ResponseWriter
	sent bool
}

func (b *begun) WriteHeader(status int) {
	b.sent = b.sent || status >= http.StatusOK
	b.ResponseWriter.WriteHeader(status)
}

func (b *begun) Write(p []byte) (int, error) {
	b.sent = true
	return b.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController: what is flushed has begun.
func (b *begun) FlushError() error {
	b.sent = true
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *begun) settle(log *slog.Logger, cause any) {
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	log.Error("panic", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if b.sent {
		panic(http.ErrAbortHandler)
	}
	Write(b, log, Internal())
}
