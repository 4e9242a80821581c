package problem

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// RecoverPanics makes a panic of next one log line and a 500. When the answer had begun the connection is cut instead, so
// that no client takes half an answer for a whole one. http.ErrAbortHandler passes through.
func RecoverPanics(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tracked := &trackedWriter{ResponseWriter: w}
		defer func() {
			if cause := recover(); cause != nil {
				tracked.answerPanic(log, cause)
			}
		}()
		next.ServeHTTP(tracked, r)
	})
}

// trackedWriter is a ResponseWriter that knows whether its answer has trackedWriter.
type trackedWriter struct {
	http.ResponseWriter
	hasBegun bool
}

func (b *trackedWriter) WriteHeader(status int) {
	b.hasBegun = b.hasBegun || status >= http.StatusOK
	b.ResponseWriter.WriteHeader(status)
}

func (b *trackedWriter) Write(p []byte) (int, error) {
	b.hasBegun = true
	return b.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController: what is flushed has begun.
func (b *trackedWriter) FlushError() error {
	b.hasBegun = true
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (b *trackedWriter) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *trackedWriter) answerPanic(log *slog.Logger, cause any) {
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	log.Error("panic", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if b.hasBegun {
		panic(http.ErrAbortHandler)
	}
	Write(b, log, Internal())
}
