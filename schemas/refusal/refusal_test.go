package refusal_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"lieudit/schemas/refusal"
)

// declaredCodes are the constants of codes.go.
func declaredCodes(t *testing.T) (all []refusal.Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, refusal.Code(text))
		}
		return true
	})
	return all
}

func TestEveryCodeHasOneRow(t *testing.T) {
	t.Parallel()
	rows := map[refusal.Code]int{}
	for _, row := range refusal.Table() {
		rows[row.Code]++
		if row.Code.With(row.Example).Error() == "" || row.Code.Error() == "" {
			t.Errorf("%s has no text as an error", row.Code)
		}
		if row.Status < 400 || row.Status > 599 {
			t.Errorf("%s is answered with %d", row.Code, row.Status)
		}
		noText := row.Form == refusal.SitesForm || row.Form == refusal.ReferentialsForm || row.Form == refusal.NoBody
		if noText != (row.Text == nil) || !noText && row.Text(row.Example) == "" {
			t.Errorf("%s has no text of its form", row.Code)
		}
	}
	codes := declaredCodes(t)
	for _, c := range codes {
		if rows[c] != 1 {
			t.Errorf("%s has %d rows, want 1", c, rows[c])
		}
	}
	if len(codes) != len(rows) {
		t.Errorf("%d codes, %d rows", len(codes), len(rows))
	}
}

func TestARefusalMatchesItsCodeAndItsDetails(t *testing.T) {
	t.Parallel()
	full := refusal.KeysOverCapacity.With(refusal.Details{Ceiling: 1, Active: 1})
	err := fmt.Errorf("issue key: %w", full)
	for _, c := range []struct {
		target error
		want   bool
	}{
		{refusal.KeysOverCapacity, true}, {full, true}, {refusal.KeysOverCapacity.With(refusal.Details{Ceiling: 2, Active: 2}), false},
		{refusal.AccountClosed, false},
	} {
		if got := errors.Is(err, c.target); got != c.want {
			t.Errorf("errors.Is(%v, %v) is %v", err, c.target, got)
		}
	}
	if got, ok := refusal.FromError(err); !ok || got != full {
		t.Errorf("got %v, %v", got, ok)
	}
	if got, ok := refusal.FromError(fmt.Errorf("x: %w", refusal.AccountClosed)); !ok || got.Code != refusal.AccountClosed {
		t.Errorf("got %v, %v", got, ok)
	}
	if _, ok := refusal.FromError(errors.New("x")); ok {
		t.Error("any error is a refusal")
	}
}
