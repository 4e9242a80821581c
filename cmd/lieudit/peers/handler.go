package peers

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// pathPrefix begins the paths at which other instances fetch files: pathPrefix + kind + "/" + sum.
	pathPrefix = "/peer/v1/"
	// instanceHeader names the instance that answers.
	instanceHeader = "Lieudit-Instance"
)

// Handler answers the requests of other instances, and passes all others on to next. A file is given to whoever shows the secret of
// its last release, one at a time: others get 503 and ask again. Any other request gets 404, so that nobody learns which files exist.
func (f *Follower) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, isPeer := strings.CutPrefix(r.URL.Path, pathPrefix)
		if !isPeer {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set(instanceHeader, f.Instance)
		w.Header().Set("Cache-Control", "no-store")
		kind, sum, _ := strings.Cut(rest, "/")
		path := f.authorize(kind, sum, r.Header.Get("Authorization"))
		if path == "" || r.Method != http.MethodGet {
			http.NotFound(w, r)
			return
		}
		f.giveFile(w, r, path)
	})
}

// authorize returns the path of a file if the header shows its secret and the file is here, "" otherwise. The time that it takes does
// not depend on how much of the secret is right, nor on whether there is one.
func (f *Follower) authorize(kind, sum, header string) (path string) {
	want, isReleased := f.dummy, false
	if view := f.fleet.Load(); view != nil {
		if r, ok := view.Find(kind, sum); ok {
			want, isReleased = r.Secret, true
		}
	}
	shown, wanted := sha256.Sum256([]byte(header)), sha256.Sum256([]byte("Bearer "+want))
	if subtle.ConstantTimeCompare(shown[:], wanted[:]) != 1 || !isReleased {
		return ""
	}
	for _, k := range f.kinds {
		if k.Kind == kind {
			_, path = k.Folder.FindSum(sum)
		}
	}
	return path
}

// giveFile sends a file, or the range that the Range header asks for, unless another one is being sent.
func (f *Follower) giveFile(w http.ResponseWriter, r *http.Request, path string) {
	select {
	case f.slot <- struct{}{}:
		defer func() { <-f.slot }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "another instance fetches a file", http.StatusServiceUnavailable)
		return
	}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, "the file cannot be read", http.StatusInternalServerError)
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	control := http.NewResponseController(w)
	defer control.SetWriteDeadline(time.Time{}) // the connection may have other requests
	http.ServeContent(&steadyWriter{w, control}, r, "", time.Time{}, file)
}

// steadyWriter cuts a reader that takes nothing for stallTimeout, so that it does not keep others from the file.
type steadyWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

var _ io.Writer = (*steadyWriter)(nil)

// Write implements io.Writer.
func (s *steadyWriter) Write(p []byte) (int, error) {
	s.control.SetWriteDeadline(time.Now().Add(stallTimeout)) // if it cannot be set, the connection's own limits hold
	return s.ResponseWriter.Write(p)
}
