package storetest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/google/uuid"
)

// checkNoGoroutineLeft runs do and wants every goroutine that came of it to end. Goroutines are told apart from those of other
// tests by a profiler label, which they inherit.
func checkNoGoroutineLeft(ctx context.Context, do func(context.Context) error) error {
	id := uuid.NewString()
	var failed error
	pprof.Do(ctx, pprof.Labels("storetest", id), func(ctx context.Context) { failed = do(ctx) })
	if failed != nil {
		return failed
	}
	deadline := time.Now().Add(cancelLimit())
	for {
		left := goroutinesLabelled(id)
		if left == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("goroutines left behind:\n%s", left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// goroutinesLabelled is the part of the goroutine profile that carries the label.
func goroutinesLabelled(id string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	var left []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, id) {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}
