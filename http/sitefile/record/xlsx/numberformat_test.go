package xlsx

import "testing"

func TestANumberIsShownAsItsFormatMeansIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ format, number, want string }{
		{"General", "105", "105"}, {"General", "1.0500000000000001", "1.05"}, {"General", "1E-3", "0.001"}, {"General", "1E300", "1e+300"},
		{"General", "abc", "abc"}, {"General", "", ""}, {"General", "-0.1", "-0.1"}, {"General", "105.0", "105"}, {"General", "007", "7"},
		{"0", "7", "7"}, {"00000", "1000", "01000"}, {"00000", "123456", "123456"}, {"00000", "-5", "-5"}, {`0#" "##" "##" "##" "##`, "466651234", "0466651234"},
		{`000" "000" "000" "00000`, "1234567800012", "01234567800012"}, {"[<=99999]00000;0", "1000", "01000"}, {"#,##0", "7", "7"}, {"0.00", "7", "7"},
		{"0%", "0.5", "0.5"}, {"0.00E+00", "12345", "12345"}, {"# ?/?", "0.5", "0.5"}, {`"mhd"0`, "7", "7"}, {`0\ "jours"`, "7", "7"},
		{"dd/mm/yyyy", "46348", "2026-11-22"}, {"[$-40C]d mmmm yyyy;@", "46348", "2026-11-22"}, {"mmm-yy", "46348", "2026-11-22"}, {"mmm", "46348", "2026-11-22"},
		{"dd/mm/yyyy", "46348.75", "2026-11-22"}, {"dd/mm/yyyy hh:mm", "46348.75", "2026-11-22T18:00:00"}, {"dd/mm/yyyy", "59", "1900-02-28"},
		{"dd/mm/yyyy", "61", "1900-03-01"}, {"dd/mm/yyyy", "-1", "-1"}, {"dd/mm/yyyy", "0.5", "0.5"}, {"dd/mm/yyyy", "1E9", "1000000000"},
		{"h:mm", "0.39583333333333331", "09:30"}, {"hh:mm:ss", "0.39584490740740741", "09:30:01"}, {"h:mm AM/PM", "0.75", "18:00"}, {"mm:ss", "0.5", "12:00"},
		{"[h]:mm", "1.25", "30:00"}, {"[Red]0", "7", "7"}, {"[", "7", "7"}, {`"`, "7", "7"}, {`\`, "7", "7"},
	} {
		if got := parseNumberFormat(c.format).format(c.number, false); got != c.want {
			t.Errorf("%q of %s: got %s, want %s", c.format, c.number, got, c.want)
		}
	}
}

func TestColumnsAreNumberedByTheirLetters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reference string
		want      int
		ok        bool
	}{{"A1", 0, true}, {"Z9", 25, true}, {"AA10", 26, true}, {"XFD1", 16_383, true}, {"ZZZZZZ1", 0, true}, {"12", 0, false}, {"", 0, false}, {"a1", 0, false}} {
		got, ok := parseColumn([]byte(c.reference))
		if c.reference == "ZZZZZZ1" {
			if got < MaxColumns {
				t.Errorf("%s: got %d", c.reference, got)
			}
			continue
		}
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: got %d, %v", c.reference, got, ok)
		}
	}
}
