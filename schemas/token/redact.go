package token

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Redact replaces every token in a text by its hint, so that it can be logged. What begins like a token but is cut
// short, or has more glued to it, is hidden whole. A text without tokens is returned as it is.
func (p Prefixes) Redact(text string) string {
	at, prefix := p.findPrefix(text)
	if at < 0 {
		return text
	}
	var out strings.Builder
	for at >= 0 {
		body := text[at+len(prefix):]
		run := wordLength(body)
		out.WriteString(text[:at+len(prefix)])
		if run > 0 {
			out.WriteString("…")
		}
		if run == bodyLen+checkLen {
			out.WriteString(body[run-hintLen : run])
		}
		text = body[run:]
		at, prefix = p.findPrefix(text)
	}
	out.WriteString(text)
	return out.String()
}

// RedactValidTokens replaces every token in a text by its hint, and nothing else: what only begins like one stays. It is for texts
// that are kept.
func (p Prefixes) RedactValidTokens(text string) string {
	at, prefix := p.findPrefix(text)
	if at < 0 {
		return text
	}
	var out strings.Builder
	for at >= 0 {
		out.WriteString(text[:at])
		text = text[at:]
		word, shown := text[:len(prefix)], prefix
		if whole := len(prefix) + bodyLen + checkLen; len(text) >= whole && p.isToken(text[:whole]) {
			word, shown = text[:whole], p.Hint(text[:whole])
		}
		out.WriteString(shown)
		text = text[len(word):]
		at, prefix = p.findPrefix(text)
	}
	out.WriteString(text)
	return out.String()
}

func (p Prefixes) isToken(text string) bool {
	_, ok := p.KindOf(text)
	return ok
}

// findPrefix finds the first prefix in a text.
func (p Prefixes) findPrefix(text string) (at int, prefix string) {
	at = -1
	for _, each := range [...]string{p.Secret, p.Publishable, p.Area} {
		if i := strings.Index(text, each); i >= 0 && (at < 0 || i < at) {
			at, prefix = i, each
		}
	}
	return at, prefix
}

// wordLength is how far a token and what is glued to it goes: another token, say.
func wordLength(text string) int {
	for i := range len(text) {
		if c := text[i]; !base62[c] && c != '_' && c != '-' {
			return i
		}
	}
	return len(text)
}

func base62Length(text string) int {
	for i := range len(text) {
		if !base62[text[i]] {
			return i
		}
	}
	return len(text)
}

// RedactingHandler is a log handler that redacts all that passes through it to next: messages and attributes.
func (p Prefixes) RedactingHandler(next slog.Handler) slog.Handler { return redactingHandler{next, p} }

type redactingHandler struct {
	slog.Handler
	prefixes Prefixes
}

func (r redactingHandler) Handle(ctx context.Context, line slog.Record) error {
	redacted := slog.NewRecord(line.Time, line.Level, r.prefixes.Redact(line.Message), line.PC)
	line.Attrs(func(a slog.Attr) bool {
		redacted.AddAttrs(r.redactAttr(a))
		return true
	})
	return r.Handler.Handle(ctx, redacted)
}

func (r redactingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return redactingHandler{r.Handler.WithAttrs(r.redactAttrs(attrs)), r.prefixes}
}

func (r redactingHandler) WithGroup(name string) slog.Handler {
	return redactingHandler{r.Handler.WithGroup(name), r.prefixes}
}

func (r redactingHandler) redactAttrs(attrs []slog.Attr) []slog.Attr {
	redacted := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		redacted[i] = r.redactAttr(a)
	}
	return redacted
}

func (r redactingHandler) redactAttr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, r.prefixes.Redact(v.String()))
	case slog.KindGroup:
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(r.redactAttrs(v.Group())...)}
	case slog.KindAny:
		text := fmt.Sprintf("%+v", v.Any())
		if redacted := r.prefixes.Redact(text); redacted != text {
			return slog.String(a.Key, redacted)
		}
		return a
	default:
		return a
	}
}
