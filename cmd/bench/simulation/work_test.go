package simulation

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/cmd/bench/simulation/faults"
	"lieudit/queries/route"
)

// promptRouter answers every matrix at once.
type promptRouter struct{ route.Router }

func (promptRouter) Matrix(context.Context, route.MatrixQuery) (route.Matrix, error) {
	return route.Matrix{}, nil
}

// total returns how much elapsed time some calls take together, and fails where one does.
func total(t *testing.T, call func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for range 20 {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(began)
}

func TestHandlersTakeElapsedTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		injector := faults.NewInjector(1)
		router := slowRouter{promptRouter{}, injector}
		ctx, hangUp := context.WithCancel(t.Context())
		defer hangUp()
		ask := func() error {
			_, err := router.Matrix(ctx, route.MatrixQuery{})
			return err
		}
		send := func() error {
			_, err := slowBody{io.NopCloser(strings.NewReader("a")), ctx, injector}.Read(make([]byte, 1))
			return err
		}
		read := func() error {
			_, err := (&slowWriter{httptest.NewRecorder(), ctx, injector}).Write([]byte("a"))
			return err
		}
		if took := total(t, ask); took == 0 || took > 2*time.Second {
			t.Errorf("20 matrices took %v, want some of two seconds", took)
		}
		if took := total(t, send) + total(t, read); took > 0 {
			t.Errorf("bodies took %v and nothing is slow", took)
		}
		injector.Strike(faults.Fault{Kind: faults.WorkSlow, Part: faults.World})
		for name, call := range map[string]func() error{"matrices": ask, "bodies sent": send, "bodies read": read} {
			if took := total(t, call); took < 10*time.Second {
				t.Errorf("20 %s took %v, want at least 10 s", name, took)
			}
		}
		hangUp()
		for name, call := range map[string]func() error{"matrices": ask, "bodies sent": send, "bodies read": read} {
			began := time.Now()
			if err := call(); !errors.Is(err, context.Canceled) || time.Since(began) > 0 {
				t.Errorf("%s for a client that is gone: %v after %v", name, err, time.Since(began))
			}
		}
	})
}
