package vault_test

import (
	"log/slog"
	"testing"
)

// testLogger writes log lines where the test's are.
func testLogger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }
