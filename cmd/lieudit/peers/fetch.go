package peers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"lieudit/eventstore/disk/osfile"
	"lieudit/schemas/event"
)

const (
	askTimeout   = 5 * time.Second  // for a connection, and for the beginning of an answer
	stallTimeout = 30 * time.Second // a transfer without a byte for this long is cut
	banPause     = 5 * time.Minute  // before a holder that gave wrong bytes is asked again
	busyPause    = time.Second      // before a holder that is giving the file to another instance is asked again
)

// newSecret returns a random secret of a release.
func newSecret() string {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails
	return hex.EncodeToString(secret)
}

// newClient returns a client that reaches instances directly: it uses no proxy of the environment and follows no redirect, so that the
// secret goes only to the address on the log.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: askTimeout}).DialContext,
			TLSHandshakeTimeout: askTimeout, ResponseHeaderTimeout: askTimeout, DisableCompression: true, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var (
	errNoHolder   = errors.New("no instance that has it runs")
	errBusy       = errors.New("it gives the file to another instance now")
	errWrongBytes = errors.New("its file has another sum, and was thrown away")
)

// fetch puts the file of a release at a path, whole and with the right sum. It asks one holder after the other, and continues at the
// byte at which the last one stopped. It returns errBusy if a holder is giving the file to another instance, and errNoHolder if no
// instance has it.
func (k *kind) fetch(ctx context.Context, view *fleetView, r event.DataReleased, path string) error {
	k.noteProgress(r, 0)
	var failures []error
	isAnyBusy := false
	for _, holder := range view.Holders(r) {
		if holder.Instance == k.follower.Instance || time.Now().Before(k.banned[holder.Instance+r.Sum]) {
			continue
		}
		err := k.fetchFrom(ctx, holder, r, path)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case osfile.IsDiskFull(err):
			return fmt.Errorf("it needs %d MiB beside what is served: %w", r.Bytes>>20, errors.Join(err, os.Remove(path)))
		case errors.Is(err, errWrongBytes):
			k.banned[holder.Instance+r.Sum] = time.Now().Add(banPause)
		case errors.Is(err, errBusy):
			isAnyBusy = true
		}
		failures = append(failures, fmt.Errorf("%s: %w", holder.URL, err))
	}
	switch {
	case isAnyBusy:
		return errBusy
	case failures == nil:
		return errNoHolder
	}
	return errors.Join(failures...)
}

// fetchFrom fetches the missing rest of a file from one holder, and compares the sum of the whole.
func (k *kind) fetchFrom(ctx context.Context, holder event.InstanceAnnounced, r event.DataReleased, path string) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	have, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have > r.Bytes {
		if have, err = 0, file.Truncate(0); err != nil {
			return err
		}
	}
	if have < r.Bytes {
		if err := k.transfer(ctx, holder, r, file, have); err != nil {
			return err
		}
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return checkSum(file, r)
}

// checkSum compares the file that was fetched with the release. A wrong one is emptied.
func checkSum(file *os.File, r event.DataReleased) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	digest := sha256.New()
	n, err := io.Copy(digest, file)
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(digest.Sum(nil)); n != r.Bytes || got != r.Sum {
		return errors.Join(errWrongBytes, file.Truncate(0))
	}
	return nil
}

// transfer appends the missing rest of a file from an offset on.
func (k *kind) transfer(ctx context.Context, holder event.InstanceAnnounced, r event.DataReleased, file *os.File, have int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(holder.URL, "/")+pathPrefix+url.PathEscape(r.Kind)+"/"+url.PathEscape(r.Sum), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.Secret)
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := k.follower.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if found := resp.Header.Get(instanceHeader); found != "" && found != holder.Instance {
		return fmt.Errorf("instance %s answers there and not %s: give each its own --peer-url", found, holder.Instance)
	}
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable:
		return errBusy
	case resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
	case resp.StatusCode == http.StatusOK:
		have = 0
	default:
		return fmt.Errorf("it answers %s", resp.Status)
	}
	if err := file.Truncate(have); err != nil {
		return err
	}
	if _, err := file.Seek(have, io.SeekStart); err != nil {
		return err
	}
	body := &watchedBody{body: resp.Body, timer: time.AfterFunc(stallTimeout, cancel), note: func(n int64) { k.noteProgress(r, have+n) }}
	defer body.timer.Stop()
	n, err := io.Copy(file, io.LimitReader(body, r.Bytes-have))
	if err == nil && have+n < r.Bytes {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// watchedBody is a body that is cut if it stalls, and whose progress is noted.
type watchedBody struct {
	body  io.Reader
	timer *time.Timer
	note  func(int64)
	read  int64
}

// Read implements io.Reader.
func (w *watchedBody) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	w.timer.Reset(stallTimeout)
	w.read += int64(n)
	w.note(w.read)
	return n, err
}
