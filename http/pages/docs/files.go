package docs

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"lieudit/http/pages/docs/reference"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// documents are the OpenAPI documents by the names of their files: the very bytes of the golden files of package body. Each is written
// once, when it is first asked for.
var documents = map[string]func() ([]byte, error){
	"openapi.json":           sync.OnceValues(body.API().JSON),
	"openapi-3.0.json":       sync.OnceValues(body.API().JSON30),
	"customer-area.json":     sync.OnceValues(body.CustomerArea().JSON),
	"customer-area-3.0.json": sync.OnceValues(body.CustomerArea().JSON30),
}

// postmanFile is the collection for Postman. It names the service's own address, so it is written for each service.
const postmanFile = "postman.json"

// serveFile answers with a document. Programs anywhere may read it, and keep it for an hour.
func serveFile(q *page.Request) (page.View, error) {
	write, ok := documents[q.Vars["file"]]
	if q.Vars["file"] == postmanFile {
		write, ok = func() ([]byte, error) { return reference.PostmanCollection(apiServer(q).URL) }, true
	}
	if !ok {
		return page.View{}, refusal.NotFound
	}
	content, err := write()
	if err != nil {
		return page.View{}, err
	}
	return page.View{Stream: func(w http.ResponseWriter, r *http.Request) error {
		sum := sha256.Sum256(content)
		h := w.Header()
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Set("Cache-Control", "public, max-age=3600")
		h.Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:12])+`"`)
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		if q.Vars["file"] == postmanFile {
			h.Set("Content-Disposition", `attachment; filename="lieudit.postman_collection.json"`)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		return nil
	}}, nil
}
