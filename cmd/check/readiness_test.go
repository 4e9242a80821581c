package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/guide"
)

// The chapter on readiness names the reasons by the words of their errors, by which an operator finds them. An error that is worded
// anew would leave the chapter with words that nobody sees.
func TestTheReasonsOfReadinessAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	chapter, err := guide.FindChapter("readiness")
	if err != nil {
		t.Fatal(err)
	}
	texts := programTexts(parseSources(t))
	reasons := findReasons(chapter.Text)
	if len(reasons) < 50 {
		t.Fatalf("found %d reasons in the chapter: this test looks in the wrong place", len(reasons))
	}
	for _, reason := range reasons {
		for _, part := range regexp.MustCompile(`…|: `).Split(reason, -1) { // an error that wraps another one adds its words before a colon
			if part = trimReason(part); !strings.Contains(texts, part) && !hasPieces(texts, part) && !isSystemText(part) {
				t.Errorf("no error of the program has %q, of the reason %q", part, reason)
			}
		}
	}
}

// hasPieces reports whether texts have what stands around the names of logs, data, engines and modes in a reason, for which an error may have a verb.
func hasPieces(texts, reason string) bool {
	for _, piece := range regexp.MustCompile(`\b(event log|log|vintage|osrm|valhalla|car|foot)\b`).Split(reason, -1) {
		if !strings.Contains(texts, trimReason(piece)) {
			return false
		}
	}
	return true
}

func trimReason(reason string) string { return strings.Trim(reason, " :,") }

// isSystemText reports whether the operating system words a reason.
func isSystemText(reason string) bool { return reason == "no space left on device" }

// findReasons returns the reasons of the chapter, with … for what varies in them: the quoted words at the beginning of each item, before
// the colon.
func findReasons(chapter string) (reasons []string) {
	_, chapter, _ = strings.Cut(chapter, "\n## ")
	for _, item := range strings.Split(chapter, "\n- ")[1:] {
		for i, span := range strings.Split(strings.Join(strings.Fields(item), " "), "`") {
			if i%2 == 0 && strings.Contains(span, ":") {
				break
			}
			if i%2 == 1 {
				reasons = append(reasons, regexp.MustCompile(`\b[A-Z]{2,}(:[A-Z]+)?\b`).ReplaceAllString(span, "…"))
			}
		}
	}
	return reasons
}

// programTexts joins the texts in the sources of the program. A text in several literals that are added is one; a verb of a format ends
// one.
func programTexts(sources []source) string {
	var texts strings.Builder
	for _, s := range sources {
		if s.isTestSource() || s.topFolder == "cmd" && !strings.HasPrefix(s.path, "cmd/lieudit/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := literalText(e)
			if ok {
				texts.WriteString(text + "\n")
			}
			return !ok
		})
	}
	return texts.String()
}

// literalText is the text of a literal, or of a sum of literals and of what is not a literal, which is …. It is false if there is no literal.
func literalText(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, _ := strconv.Unquote(e.Value)
		return text, true
	case *ast.BinaryExpr:
		left, hasLeft := literalText(e.X)
		right, hasRight := literalText(e.Y)
		return left + right, e.Op == token.ADD && (hasLeft || hasRight)
	}
	return "…", false
}
