package console

import (
	"net/http"
	"strconv"
	"strings"
)

// language is the one of the page's that a request prefers: that of the parameter lang, which the page's
// switch sets, or else of Accept-Language.
func language(r *http.Request) string {
	if asked := r.URL.Query().Get("lang"); asked == "en" || asked == "zh" {
		return asked
	}
	best, most := "en", 0.0
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Language"), ","), ",") {
		tag, parameters, _ := strings.Cut(part, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		weight := 1.0
		if text, is := strings.CutPrefix(strings.TrimSpace(parameters), "q="); is {
			weight, _ = strconv.ParseFloat(text, 64)
		}
		if (primary == "en" || primary == "zh") && weight > most {
			best, most = primary, weight
		}
	}
	return best
}
