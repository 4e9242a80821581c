package simulation

import (
	"context"
	"log/slog"
	"slices"

	"lieudit/cmd/bench/simulation/customers"
)

// The messages that an instance logs when it uses a file of an earlier run, and when it cannot. It then starts without that file and
// gives the same answers, so that nothing but the log shows it. No fault here damages such a file.
var (
	usedFileMessages   = []string{"a snapshot is read", "key ring's snapshot is read"}
	unusedFileMessages = []string{"a snapshot is ignored", "key ring's snapshot is not used"}
)

// messageHandler is the handler of an instance's log. It notes what the instance says of its files, and reports what it complains about
// and never should.
type messageHandler struct {
	slog.Handler
	node *node
}

// Enabled implements slog.Handler: what is looked at is looked at even when nobody reads the log.
func (messageHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h messageHandler) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case slices.Contains(usedFileMessages, r.Message):
		h.node.before.noteSnapshot(attributeOf(r, "stream"))
	case slices.Contains(unusedFileMessages, r.Message):
		text := r.Message
		r.Attrs(func(a slog.Attr) bool {
			text += " " + a.String()
			return true
		})
		h.node.world.Report(customers.OwnFilesAreUsed, "%s", text)
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// attributeOf returns the text of an attribute, or "" if the record has none of that name.
func attributeOf(r slog.Record, name string) (text string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == name {
			text = a.Value.String()
		}
		return a.Key != name
	})
	return text
}

// WithAttrs implements slog.Handler.
func (h messageHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return messageHandler{h.Handler.WithAttrs(attrs), h.node}
}

// WithGroup implements slog.Handler.
func (h messageHandler) WithGroup(name string) slog.Handler {
	return messageHandler{h.Handler.WithGroup(name), h.node}
}
