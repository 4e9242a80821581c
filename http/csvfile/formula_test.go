package csvfile_test

import (
	"testing"

	"lieudit/http/csvfile"
)

func TestATextThatBeginsLikeAFormulaGetsAnApostrophe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+33": "'+33", "-k1": "'-k1", "@sum": "'@sum", "\tx": "'\tx", "\rx": "'\rx", "'=1": "''=1", "''+": "'''+",
		"": "", "'": "'", "'a": "'a", "a=1": "a=1", " =1": " =1", "é": "é",
	} {
		if got := csvfile.EscapeFormula(text); got != want {
			t.Errorf("%q is escaped as %q, want %q", text, got, want)
		}
	}
}

func TestOnlyAnApostropheThatWasPutThereIsTakenOff(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{"'=1": "=1", "''=1": "'=1", "'a": "'a", "'": "'", "''": "''", "=1": "=1", "": ""} {
		if got := csvfile.UnescapeFormula(cell); got != want {
			t.Errorf("%q is unescaped as %q, want %q", cell, got, want)
		}
	}
}

func FuzzFormulasComeBack(f *testing.F) {
	for _, seed := range []string{"", "'", "=", "'=", "''=", "+33 4", "'''", "\t", "'\r\n", "é'", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cell := csvfile.EscapeFormula(text)
		if got := csvfile.UnescapeFormula(cell); got != text {
			t.Errorf("%q is escaped as %q, which is unescaped as %q", text, cell, got)
		}
	})
}
