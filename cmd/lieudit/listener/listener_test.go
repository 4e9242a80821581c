package listener

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"
)

// A request that neither ends in time nor notices that its connection was cut is left behind, and the caller is told.
func TestRequestsThatDoNotEndAreLeftBehind(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{true, false} {
		begun, released := make(chan struct{}), make(chan struct{})
		handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			if ends {
				<-r.Context().Done()
			} else {
				<-released
			}
		})
		l := New("API", "127.0.0.1:0", 10, handler, func() bool { return false }, slog.New(slog.DiscardHandler))
		if err := l.Open(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served, answered := make(chan error), make(chan error)
		go func() { served <- l.Serve(ctx, time.Millisecond) }()
		go func() {
			_, err := http.Get(l.URL())
			answered <- err
		}()
		<-begun
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if l.HasRequests() == ends {
			t.Errorf("the request notices that it was cut: %v; requests are left: %v", ends, l.HasRequests())
		}
		close(released)
		if err := <-answered; err == nil {
			t.Error("a request that was cut has an answer")
		}
	}
}
