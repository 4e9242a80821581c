// Package answer writes JSON answers, all in one way: application/json, no HTML escaping, a newline at the
// end, and a Content-Length, so that nothing is sent before everything is known.
package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// WriteJSON answers with v. An error means that nothing was sent.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(buffer.Len()))
	w.WriteHeader(status)
	w.Write(buffer.Bytes()) // a client that went away is nobody's error
	return nil
}

// AbortResponse breaks off an answer that has begun and cannot be ended, so that nobody takes the part for the whole.
func AbortResponse(w http.ResponseWriter) error {
	return http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
}
