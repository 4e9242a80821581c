package kit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"lieudit/http/budget"
	"lieudit/http/problem"
	"lieudit/schemas/refusal"
)

// jsonAppender is a value that writes itself, in the form of MarshalJSON. An answer of thousands of numbers does that faster than
// encoding/json.
type jsonAppender interface {
	AppendJSON(text []byte) ([]byte, error)
}

// MarshalJSON is JSON as every answer and file has it: HTML characters are not escaped, no newline at the end.
func MarshalJSON(v any) ([]byte, error) {
	if a, ok := v.(jsonAppender); ok {
		return a.AppendJSON(make([]byte, 0, 4<<10))
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// WriteJSON answers with v: application/json, a newline at the end, and a Content-Length, so that nothing is sent before
// everything is known. An error means that nothing was sent.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	text, err := encodeBody(v)
	if err != nil {
		return err
	}
	writeText(w, status, text)
	return nil
}

// encodeBody is the text of an answer.
func encodeBody(v any) ([]byte, error) {
	text, err := MarshalJSON(v)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return append(text, '\n'), nil
}

// writeText answers with JSON that is encoded.
func writeText(w http.ResponseWriter, status int, text []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	w.Write(text) // that the client went away is not an error of the service
}

// AbortResponse breaks off an answer that has begun and cannot be completed, so that no client takes the part for the
// whole. A write deadline in the past makes every later write fail, that of the answer's end too, and the server closes the
// connection. It fails with http.ErrNotSupported where w has no deadlines.
func AbortResponse(w http.ResponseWriter) error {
	return http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
}

// logBreakOff logs what broke an answer off. A client that went away is not an incident. Nor is a budget that had no share left: whoever
// sends enough requests could fill the log with it, and before the answer begins it is not logged either.
func logBreakOff(ctx context.Context, log *slog.Logger, what string, err error) {
	if ctx.Err() != nil || errors.Is(err, budget.ErrOverloaded) {
		log.Debug(what, "error", err)
		return
	}
	log.Error(what, "error", err)
}

// WriteError answers with what problem.FromError makes of err: a status and a body, for a 405 also the header Allow. An error
// that is not known is logged once, and the client learns nothing of it but a 500. log must redact tokens. Nothing of the
// answer may have been sent yet.
func WriteError(w http.ResponseWriter, log *slog.Logger, err error) {
	p, known := problem.FromError(err)
	if !known {
		logCause(log, err)
	}
	observeRefusal(w, string(cmp.Or(p.Code, brokenRules)))
	if p.Allow != "" {
		w.Header().Set("Allow", p.Allow)
	}
	if p.Body == nil {
		w.WriteHeader(p.Status)
		return
	}
	if err := WriteJSON(w, p.Status, p.Body); err != nil {
		log.Error("error answer not written", "error", err)
	}
}

// brokenRules is the reason of a refusal that names broken rules of a request's form and has no code.
const brokenRules refusal.Code = "regles"

// RefusalObserver is a ResponseWriter that is told why a request was refused, by the code of the refusal. It may be wrapped in
// others that have a method Unwrap.
type RefusalObserver interface{ ObserveRefusal(reason string) }

// observeRefusal tells the RefusalObserver among a writer and those in it, where there is one.
func observeRefusal(w http.ResponseWriter, reason string) {
	for w != nil {
		if observer, ok := w.(RefusalObserver); ok {
			observer.ObserveRefusal(reason)
			return
		}
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = wrapper.Unwrap()
	}
}

// logCause logs the cause of a 500. A client that went away is not an incident.
func logCause(log *slog.Logger, err error) {
	if errors.Is(err, context.Canceled) {
		log.Debug("request abandoned", "error", err)
		return
	}
	log.Error("request failed", "error", err)
}

// RecoverPanics turns a panic of next into one log line and a 500. When the answer has begun the connection is cut
// instead, so that no client takes half an answer for a whole one. http.ErrAbortHandler passes through.
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

// trackedWriter is a ResponseWriter that records whether its answer has begun.
type trackedWriter struct {
	http.ResponseWriter
	hasBegun bool
}

// WriteHeader notes that the answer has begun. A status below 200 announces an answer and does not begin it.
func (t *trackedWriter) WriteHeader(status int) {
	t.hasBegun = t.hasBegun || status >= http.StatusOK
	t.ResponseWriter.WriteHeader(status)
}

func (t *trackedWriter) Write(p []byte) (int, error) {
	t.hasBegun = true
	return t.ResponseWriter.Write(p)
}

// FlushError implements what http.ResponseController looks for. What is flushed has begun.
func (t *trackedWriter) FlushError() error {
	t.hasBegun = true
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap implements what http.ResponseController looks for.
func (t *trackedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// answerPanic logs a panic with its stack. It answers 500, or panics with http.ErrAbortHandler where an answer has begun.
func (t *trackedWriter) answerPanic(log *slog.Logger, cause any) {
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	log.Error("panic", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if t.hasBegun {
		panic(http.ErrAbortHandler)
	}
	WriteError(t, log, refusal.Internal)
}
