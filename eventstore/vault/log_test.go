package vault_test

import (
	"log/slog"
	"testing"
)

// quiet writes log lines where the test's are.
func quiet(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }
