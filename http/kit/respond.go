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

// jsonAppender is a value that encodes itself, in the form of MarshalJSON. For an answer of thousands of numbers that is faster than
// encoding/json.
type jsonAppender interface {
	AppendJSON(text []byte) ([]byte, error)
}

// usualText is how many bytes most answers fit in.
const usualText = 512

// MarshalJSON encodes v as in all answers and files: HTML characters are not escaped, and no newline follows.
func MarshalJSON(v any) ([]byte, error) {
	if a, ok := v.(jsonAppender); ok {
		return a.AppendJSON(make([]byte, 0, 4<<10))
	}
	var text bytes.Buffer
	text.Grow(usualText)
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// WriteJSON answers with v as application/json, with a newline at the end and a Content-Length, so that nothing is sent before
// everything is known. An error means that nothing was sent.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	text, err := encodeBody(v)
	if err != nil {
		return err
	}
	writeText(w, status, text)
	return nil
}

// encodeBody returns the text of an answer.
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
	w.Write(text) // a client that went away is not an error of the service
}

// AbortResponse breaks off an answer that has begun and cannot be completed, so that no client takes the part for the whole. A write
// deadline in the past makes every later write fail, including that of the answer's end, and the server closes the connection.
// AbortResponse fails with http.ErrNotSupported if w does not support deadlines.
func AbortResponse(w http.ResponseWriter) error {
	return http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
}

// logBreakOff logs the error that broke an answer off. A client that went away is not an incident. Nor is a budget without a share left:
// anybody who sends enough requests could fill the log with it, and it is not logged before an answer begins either.
func logBreakOff(ctx context.Context, log *slog.Logger, what string, err error) {
	if ctx.Err() != nil || errors.Is(err, budget.ErrOverloaded) {
		log.Debug(what, "error", err)
		return
	}
	log.Error(what, "error", err)
}

// WriteError answers with the status and body that problem.FromError returns for err, and for a 405 with the header Allow. An unknown
// error is logged once, and the client learns nothing of it but a 500. log must redact tokens. Nothing of the answer may have been sent
// yet.
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

// brokenRules is the reason of a refusal without a code, which lists the rules that the request breaks.
const brokenRules refusal.Code = "regles"

// RefusalObserver is a ResponseWriter that gets the reason why a request was refused, the code of the refusal. It may be wrapped in
// other writers that have an Unwrap method.
type RefusalObserver interface{ ObserveRefusal(reason string) }

// observeRefusal passes the reason to the first RefusalObserver among a writer and those that it wraps, if there is one.
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

// RecoverPanics turns a panic of next into one log line and a 500. If the answer has begun, it cuts the connection instead, so that no
// client takes half an answer for a whole one. http.ErrAbortHandler passes through.
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

// WriteHeader records that the answer has begun. A status below 200 announces an answer and does not begin it.
func (t *trackedWriter) WriteHeader(status int) {
	t.hasBegun = t.hasBegun || status >= http.StatusOK
	t.ResponseWriter.WriteHeader(status)
}

func (t *trackedWriter) Write(p []byte) (int, error) {
	t.hasBegun = true
	return t.ResponseWriter.Write(p)
}

// FlushError is the method that http.ResponseController looks for. A flushed answer has begun.
func (t *trackedWriter) FlushError() error {
	t.hasBegun = true
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap is the method that http.ResponseController looks for.
func (t *trackedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// answerPanic logs a panic with its stack. It answers 500, or panics with http.ErrAbortHandler if an answer has begun.
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
