package listener

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Nobody gets the answer of a request that is cut, whether its handler notices that or keeps running.
func TestServeTellsWhetherItCutRequests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		finish  time.Duration
		notices bool // that its connection was cut
		want    bool
	}{
		"a request that ends in time":        {time.Minute, true, false},
		"a request that ends once it is cut": {time.Millisecond, true, true},
		"a request that keeps running":       {time.Millisecond, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, released := make(chan struct{}), make(chan struct{})
			handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(begun)
				cut := r.Context().Done()
				if !test.notices {
					cut = nil
				}
				select {
				case <-cut:
				case <-released:
				}
			})
			l := New("API", "127.0.0.1:0", 10, handler, func() bool { return false }, slog.New(slog.DiscardHandler))
			if err := l.Open(); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			served, answered := make(chan error), make(chan error)
			go func() { served <- l.Serve(ctx, test.finish) }()
			go func() {
				_, err := http.Get(l.URL())
				answered <- err
			}()
			<-begun
			stop()
			release := sync.OnceFunc(func() { close(released) })
			if !test.want {
				release()
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
			if l.HasCutRequests() != test.want {
				t.Errorf("requests were cut: %v, want %v", l.HasCutRequests(), test.want)
			}
			release()
			if err := <-answered; (err != nil) != test.want {
				t.Errorf("the request was answered with %v", err)
			}
		})
	}
}
