package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/cmd/bench/simulation/faults"
	"lieudit/cmd/lieudit/instance"
)

// circumstances are the last things that happened to an instance before a rule was broken: usually one of them is the reason.
type circumstances struct {
	mu                        sync.Mutex
	struck, started, snapshot incident
}

// incident is an event in words. The zero incident means that nothing happened.
type incident struct {
	text string
	at   time.Time // elapsed time
}

func (i incident) describe(now time.Time) string {
	if i.text == "" {
		return ""
	}
	return fmt.Sprintf("%s %.3fs before", i.text, now.Sub(i.at).Seconds())
}

// noteStrike notes that a fault strikes the instance, or one of its calls.
func (c *circumstances) noteStrike(f faults.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.struck = incident{fmt.Sprintf("struck by %q (%s)", f.Kind, f.Part), time.Now()}
}

// noteStart notes that an instance starts on a folder.
func (c *circumstances) noteStart(folder string) {
	text := "started without a key ring"
	if _, err := os.Stat(filepath.Join(folder, instance.KeyRingFile)); err == nil {
		text = "started with its key ring"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = incident{text, time.Now()}
}

// noteSnapshot notes that the instance has read a snapshot: of a stream, or of its key ring if stream is "".
func (c *circumstances) noteSnapshot(stream string) {
	if stream == "" {
		stream = "the key ring"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snapshot = incident{"read the snapshot of " + stream, time.Now()}
}

// describe describes what last happened to an instance, and how long ago.
func (c *circumstances) describe(now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, i := range []incident{c.struck, c.started, c.snapshot} {
		if text := i.describe(now); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// describeCircumstances describes what last happened to each instance, and which fault was the last of all.
func (w *World) describeCircumstances() string {
	now, last := time.Now(), (*node)(nil)
	all := make([]string, 0, len(w.nodes)+1)
	for _, n := range w.nodes {
		all = append(all, fmt.Sprintf("instance %d: %s", n.number, n.before.describe(now)))
		if struck := n.before.lastStrike(); struck.text != "" && (last == nil || struck.at.After(last.before.lastStrike().at)) {
			last = n
		}
	}
	if last != nil {
		all = slices.Insert(all, 0, fmt.Sprintf("the last fault struck instance %d", last.number))
	}
	return strings.Join(all, "; ")
}

// lastStrike returns the last fault that struck the instance.
func (c *circumstances) lastStrike() incident {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.struck
}

// The messages that an instance logs when it uses a file of an earlier run, and when it cannot. Without the file it starts too and gives the
// same answers, so only its log shows the loss. No fault here damages such a file.
var (
	usedFileMessages   = []string{"a snapshot is read", "key ring snapshot loaded"}
	unusedFileMessages = []string{"a snapshot is ignored", "key ring snapshot ignored"}
)

// messageHandler is the handler of an instance's log. It notes messages about the instance's files, and reports complaints that should never
// occur.
type messageHandler struct {
	slog.Handler
	node *node
}

// Enabled implements slog.Handler. Every message is inspected, even if nobody reads the log.
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

// attributeOf returns the text of an attribute, or "" if the record has none with that name.
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
