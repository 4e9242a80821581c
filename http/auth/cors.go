package auth

import "net/http"

// AllowAnyOrigin lets scripts of any web page read an answer. There are no cookies, so nothing is given away.
func AllowAnyOrigin(h http.Header) { h.Set("Access-Control-Allow-Origin", "*") }

// WritePreflight answers a browser's question before the request itself. It carries no key, so none is asked for.
func WritePreflight(w http.ResponseWriter) {
	h := w.Header()
	AllowAnyOrigin(h)
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Max-Age", "7200") // what Chromium keeps at most
	w.WriteHeader(http.StatusNoContent)
}
