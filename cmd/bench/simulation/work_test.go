package simulation

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/cmd/bench/simulation/faults"
	"lieudit/http/kit"
	"lieudit/queries/route"
)

// promptRouter answers every matrix at once.
type promptRouter struct{ route.Router }

func (promptRouter) Matrix(context.Context, route.MatrixQuery) (route.Matrix, error) {
	return route.Matrix{}, nil
}

// total returns how much elapsed time some calls take together. It fails the test if one of them fails.
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
			_, err := (&slowWriter{ResponseRecorder: httptest.NewRecorder(), ctx: ctx, injector: injector}).Write([]byte("a"))
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

func TestAnAnswerThatIsBrokenOffIsNotWhole(t *testing.T) {
	t.Parallel()
	answer := &slowWriter{ResponseRecorder: httptest.NewRecorder(), ctx: t.Context(), injector: faults.NewInjector(1)}
	if _, err := answer.Write([]byte("a")); err != nil || answer.isCut() {
		t.Errorf("before: %v, cut %v", err, answer.isCut())
	}
	controller := http.NewResponseController(answer)
	if err := controller.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil || answer.isCut() {
		t.Errorf("with a deadline to come: %v, cut %v", err, answer.isCut())
	}
	if err := kit.AbortResponse(answer); err != nil {
		t.Fatal(err)
	}
	if _, err := answer.Write([]byte("b")); err == nil || !answer.isCut() {
		t.Errorf("after it was broken off: %v, cut %v", err, answer.isCut())
	}
}
