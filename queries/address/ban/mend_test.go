package ban

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// double is UTF-8 taken for Latin-1 and encoded again.
func double(s string) string {
	var out strings.Builder
	for _, c := range []byte(s) {
		out.WriteRune(rune(c))
	}
	return out.String()
}

func TestLettersEncodedTwiceAreMended(t *testing.T) {
	t.Parallel()
	for broken, want := range map[string]string{
		"Avenue GalliÃ©ni": "Avenue Galliéni", "RÃ‰PUBLIQUE": "RÉPUBLIQUE", "lâ€™Ã‰glise": "l’Église", "Ã\u00a0 la cÃ´te": "à la côte",
		"Å“uvres": "œuvres", "Rue de l'été": "Rue de l'été", "Âge d'or": "Âge d'or", "château": "château", "São Paulo": "São Paulo",
		"Ã": "Ã", "été, RÃ©publique": "été, République", "ÅÃ": "ÅÃ",
		double("Île Saint-Hélène, l’Œuvre"): "Île Saint-Hélène, l’Œuvre",
	} {
		if got := string(repairEncoding([]byte(broken))); got != want {
			t.Errorf("%q became %q, want %q", broken, got, want)
		}
	}
	rows, report, err := all(t, strings.NewReader(header+strings.Replace(one, "Rue du Soubeyran", double("Allée Été"), 1)))
	if err != nil || len(rows) != 1 || rows[0].Voie != "Allée Été" || report.Repaired != 1 {
		t.Errorf("%v, %+v, %v", rows, report, err)
	}
}

func FuzzMend(f *testing.F) {
	for _, s := range []string{"GalliÃ©ni", "été", "Ã", double("Œuf"), "â€"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := repairEncoding([]byte(s))
		if len(got) > len(s) || utf8.ValidString(s) && !utf8.Valid(got) {
			t.Errorf("%q became %q", s, got)
		}
	})
}
