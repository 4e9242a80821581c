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
	at, prefix := p.next(text)
	if at < 0 {
		return text
	}
	var out strings.Builder
	for at >= 0 {
		body := text[at+len(prefix):]
		run := wordRun(body)
		out.WriteString(text[:at+len(prefix)])
		if run > 0 {
			out.WriteString("…")
		}
		if run == bodyLen+checkLen {
			out.WriteString(body[run-hintLen : run])
		}
		text = body[run:]
		at, prefix = p.next(text)
	}
	out.WriteString(text)
	return out.String()
}

// Conceal replaces every token in a text by its hint, and nothing else: what only begins like one stays. It is for texts
// that are kept.
func (p Prefixes) Conceal(text string) string {
	at, prefix := p.next(text)
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
		at, prefix = p.next(text)
	}
	out.WriteString(text)
	return out.String()
}

func (p Prefixes) isToken(text string) bool {
	_, ok := p.Kind(text)
	return ok
}

// next finds the first prefix in a text.
func (p Prefixes) next(text string) (at int, prefix string) {
	at = -1
	for _, each := range [...]string{p.Secret, p.Publishable, p.Area} {
		if i := strings.Index(text, each); i >= 0 && (at < 0 || i < at) {
			at, prefix = i, each
		}
	}
	return at, prefix
}

// wordRun is how far a token and what is glued to it goes: another token, say.
func wordRun(text string) int {
	for i := range len(text) {
		if c := text[i]; !base62[c] && c != '_' && c != '-' {
			return i
		}
	}
	return len(text)
}

func base62Run(text string) int {
	for i := range len(text) {
		if !base62[text[i]] {
			return i
		}
	}
	return len(text)
}

// Redacting is a log handler that redacts all that passes through it to next: messages and attributes.
func (p Prefixes) Redacting(next slog.Handler) slog.Handler { return redacting{next, p} }

type redacting struct {
	slog.Handler
	prefixes Prefixes
}

func (r redacting) Handle(ctx context.Context, line slog.Record) error {
	clean := slog.NewRecord(line.Time, line.Level, r.prefixes.Redact(line.Message), line.PC)
	line.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(r.attr(a))
		return true
	})
	return r.Handler.Handle(ctx, clean)
}

func (r redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	return redacting{r.Handler.WithAttrs(r.all(attrs)), r.prefixes}
}

func (r redacting) WithGroup(name string) slog.Handler {
	return redacting{r.Handler.WithGroup(name), r.prefixes}
}

func (r redacting) all(attrs []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = r.attr(a)
	}
	return clean
}

func (r redacting) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, r.prefixes.Redact(v.String()))
	case slog.KindGroup:
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(r.all(v.Group())...)}
	case slog.KindAny:
		text := fmt.Sprintf("%+v", v.Any())
		if clean := r.prefixes.Redact(text); clean != text {
			return slog.String(a.Key, clean)
		}
		return a
	default:
		return a
	}
}
