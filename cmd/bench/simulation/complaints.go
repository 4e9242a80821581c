package simulation

import (
	"context"
	"log/slog"
	"slices"

	"lieudit/cmd/bench/simulation/customers"
)

// unusedFileMessages are what an instance logs when it cannot use a file that an earlier run left for it. It then begins without that
// file and gives the same answers, so that nothing else would show it. No fault here damages such a file.
var unusedFileMessages = []string{"a snapshot is ignored", "key ring's snapshot is not used"}

// complaintHandler is the handler of the instances' log. It reports what an instance complains about and never should.
type complaintHandler struct {
	slog.Handler
	world *World
}

// Enabled implements slog.Handler: warnings are looked at even where nobody reads the log.
func (h complaintHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h complaintHandler) Handle(ctx context.Context, r slog.Record) error {
	if slices.Contains(unusedFileMessages, r.Message) {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool {
			text += " " + a.String()
			return true
		})
		h.world.Report(customers.OwnFilesAreUsed, "%s", text)
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h complaintHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return complaintHandler{h.Handler.WithAttrs(attrs), h.world}
}

// WithGroup implements slog.Handler.
func (h complaintHandler) WithGroup(name string) slog.Handler {
	return complaintHandler{h.Handler.WithGroup(name), h.world}
}
