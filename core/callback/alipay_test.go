package callback_test

import (
	"crypto"
	"crypto/md5"
	_ "crypto/sha1" // for a signature that is to be refused
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

const alipayApp = "2021000117650139"

// chinese is a text whose bytes differ between the charsets.
const chinese = "茶叶 & 茶壶" //nolint:gosmopolitan // Alipay's texts are Chinese

// alipayNotice is a notification as Alipay sends it, without its signature.
func alipayNotice() url.Values {
	return url.Values{
		"app_id": {alipayApp}, "auth_app_id": {alipayApp}, "body": {"https://example.com/?a=1&b=2"}, "buyer_id": {"2088812847201551"},
		"charset": {"utf-8"}, "fund_bill_list": {`[{"amount":"9.90","fundChannel":"PCREDIT"}]`}, "gmt_create": {"2026-01-02 16:18:21"},
		"invoice_amount": {"9.90"}, "notify_id": {"2026010200222161821001551453140885"}, "notify_time": {"2026-01-02 16:18:21"},
		"notify_type": {"trade_status_sync"}, "out_trade_no": {"order-17"}, "seller_id": {"2088631240818980"},
		"subject": {chinese + " 100% +1"}, "total_amount": {"9.90"}, "trade_no": {"2026010222001401551430614892"},
		"trade_status": {"TRADE_SUCCESS"}, "version": {"1.0"},
	}
}

// alipayBy signs a form as Alipay does, which then has sign and sign_type.
func alipayBy(s *signer, form url.Values) url.Values {
	form = maps.Clone(form)
	form.Set("sign", s.sign(crypto.SHA256, []byte(alipaySigned(form))))
	form.Set("sign_type", "RSA2")
	return form
}

// with is a form with another field. An empty value takes the field away.
func with(form url.Values, name string, values ...string) url.Values {
	form = maps.Clone(form)
	form[name] = values
	if len(values) == 0 {
		delete(form, name)
	}
	return form
}

// inGBK is a form whose texts are in GBK.
func inGBK(t *testing.T, form url.Values) url.Values {
	t.Helper()
	form = maps.Clone(form)
	for name, values := range form {
		text, err := simplifiedchinese.GBK.NewEncoder().String(values[0])
		if err != nil {
			t.Fatal(err)
		}
		form[name] = []string{text}
	}
	return form
}

// serialOf is what Alipay calls a certificate.
func serialOf(t *testing.T, certificate string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(certificate))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := md5.Sum([]byte("CN=provider,O=Authority,C=CN" + cert.SerialNumber.String()))
	return hex.EncodeToString(sum[:])
}

func verifyAlipay(t testing.TB, keys ...string) callback.Verify {
	t.Helper()
	v, err := callback.VerifyAlipay(alipayApp, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAlipaySignature(t *testing.T) {
	t.Parallel()
	s, stranger := signers()[0], signers()[1]
	notice := alipayNotice()
	good := alipayBy(s, notice)
	serial, other := serialOf(t, s.certificate), serialOf(t, stranger.certificate)
	life := with(notice, "sign_type", "RSA2")
	life.Set("sign", s.sign(crypto.SHA256, []byte(alipaySigned(life))))
	sha1 := with(with(notice, "sign", s.sign(crypto.SHA1, []byte(alipaySigned(notice)))), "sign_type", "RSA")
	plain, cert := verifyAlipay(t, s.public), verifyAlipay(t, stranger.certificate, s.certificate)
	for name, c := range map[string]struct {
		verify    callback.Verify
		form      url.Values
		proven    bool
		malformed bool
	}{
		"a public key":                {verify: plain, form: good, proven: true},
		"a public key without PEM":    {verify: verifyAlipay(t, s.bare()), form: good, proven: true},
		"the key before":              {verify: verifyAlipay(t, stranger.public, s.public), form: good, proven: true},
		"a certificate":               {verify: cert, form: good, proven: true},
		"a certificate that is named": {verify: cert, form: with(good, "alipay_cert_sn", serial), proven: true},
		"another's certificate":       {verify: cert, form: with(good, "alipay_cert_sn", other)},
		"an unknown certificate":      {verify: cert, form: with(good, "alipay_cert_sn", "x")},
		"no certificate's name":       {verify: cert, form: with(good, "alipay_cert_sn", "")},
		"a certificate and a key":     {verify: plain, form: with(good, "alipay_cert_sn", serial)},
		"no certificate and a key":    {verify: plain, form: with(good, "alipay_cert_sn", "")},
		"two certificates":            {verify: cert, form: with(good, "alipay_cert_sn", serial, other), malformed: true},
		"a stranger":                  {verify: plain, form: alipayBy(stranger, notice)},
		"a life account":              {verify: plain, form: life, proven: true},
		"SHA-1":                       {verify: plain, form: sha1},
		"SHA-1 under another name":    {verify: plain, form: with(sha1, "sign_type", "RSA2")},
		"RSA-PSS":                     {verify: plain, form: with(good, "sign", s.pss([]byte(alipaySigned(notice))))},
		"another case of the type":    {verify: plain, form: with(good, "sign_type", "rsa2")},
		"no type":                     {verify: plain, form: with(good, "sign_type")},
		"no signature":                {verify: plain, form: with(good, "sign")},
		"a line break in it":          {verify: plain, form: with(good, "sign", good.Get("sign")[:64]+"\n"+good.Get("sign")[64:])},
		"two signatures":              {verify: plain, form: with(good, "sign", good.Get("sign"), "AA=="), malformed: true},
		"two amounts":                 {verify: plain, form: with(good, "total_amount", "9.90", "0.01"), malformed: true},
		"a field without a value":     {verify: plain, form: alipayBy(s, with(notice, "buyer_logon_id", "")), proven: true},
		"a character that was lost":   {verify: plain, form: alipayBy(s, with(notice, "buyer_logon_id", "tea \ufffd")), proven: true},
		"such a field, added":         {verify: plain, form: with(good, "buyer_logon_id", "")},
		"another app":                 {verify: plain, form: alipayBy(s, with(notice, "app_id", "2021000117650140"))},
		"no app":                      {verify: plain, form: alipayBy(s, with(notice, "app_id"))},
		"an app in a text":            {verify: plain, form: alipayBy(s, with(with(notice, "app_id"), "agreement", "x&app_id="+alipayApp)), malformed: true},
		"a charset in a text":         {verify: plain, form: alipayBy(s, with(notice, "body", "x&charset=gbk")), malformed: true},
		"a type in a text":            {verify: plain, form: alipayBy(s, with(notice, "passback_params", "x&sign_type=RSA2")), malformed: true},
		"no charset":                  {verify: plain, form: alipayBy(s, with(notice, "charset")), malformed: true},
		"an unknown charset":          {verify: plain, form: alipayBy(s, with(notice, "charset", "big5")), malformed: true},
		"UTF-8":                       {verify: plain, form: alipayBy(s, with(notice, "charset", "UTF-8")), proven: true},
		"GBK":                         {verify: plain, form: alipayBy(s, inGBK(t, with(notice, "charset", "GBK"))), proven: true},
		"GB2312":                      {verify: plain, form: alipayBy(s, inGBK(t, with(notice, "charset", "gb2312"))), proven: true},
		"GBK under another name":      {verify: plain, form: alipayBy(s, inGBK(t, notice)), malformed: true},
		"no text of GBK":              {verify: plain, form: alipayBy(s, with(with(notice, "charset", "gbk"), "subject", "\xff\xff")), malformed: true},
		"converted before":            {verify: plain, form: with(alipayBy(s, inGBK(t, with(notice, "charset", "GBK"))), "subject", notice.Get("subject"))},
	} {
		payload, err := c.verify(t.Context(), signedDelivery(c.form.Encode()))
		if (err == nil) != c.proven || errors.Is(err, callback.ErrMalformed) != c.malformed || errors.Is(err, callback.ErrCannotVerify) {
			t.Errorf("%s: got %v, want it proven (%t), or malformed (%t), or refused", name, err, c.proven, c.malformed)
		}
		if err != nil {
			continue
		}
		got, err := url.ParseQuery(string(payload))
		want := with(notice, "charset", "utf-8")
		got.Del("buyer_logon_id") // of one case
		if err != nil || !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: got the payload %v, %v, want the signed fields in UTF-8: %v", name, got, err, want)
		}
	}
	for _, body := range []string{"", "%", "a;b", "{}"} {
		if payload, err := plain(t.Context(), signedDelivery(body)); err == nil {
			t.Errorf("%q: got it proven with %q, want it refused", body, payload)
		}
	}
}

// TestAlipayVector: openssl dgst -sha256 -sign has made the signature.
func TestAlipayVector(t *testing.T) {
	t.Parallel()
	const body = "app_id=2021000117650139&charset=GBK&notify_id=2026010100222161821001551453140885&notify_type=trade_status_sync" +
		"&out_trade_no=17&subject=%B2%E8%D2%B6+%26+%B2%E8%BA%F8&total_amount=9.90&trade_status=TRADE_SUCCESS&version=1.0&sign=" +
		"RkEHEFvTCI5gfRU4m44bhlfZHVU5hqbtuWmrTNm5fzjORoZOLpVhQMnXKX67vpLNZdHQ3J2Z3FNFyDtLr6stazEwCxbA3QB1hZMeKTIqlJPd8R4GMlMxeW8rRSnMzcxZ4M1y%2F7Pib%2BRewBLe0dzy%2FIla9NIkeIVHGuJkyQ8Ko14b24VCN9ANSC3mifKkoRJR3bi0EwKheG1jLYP77RfsPJsFQ1Qe8vf3qk6h%2B8vliRGLMxpdow1DLAtkWahwEt%2B1nRnsFKaj7yJbH6yGGhz4EFfcUsJooFEPlwFkrTX5WNxbZq36pJ8P%2Frzr3yqpFpUnqe%2FSnLvbvlwJpt7TIlcxPA%3D%3D" +
		"&sign_type=RSA2"
	payload, err := verifyAlipay(t, vectorKey)(t.Context(), signedDelivery(body))
	if err != nil {
		t.Fatal(err)
	}
	form, err := url.ParseQuery(string(payload))
	if err != nil || form.Get("subject") != chinese || form.Has("sign") || form.Has("sign_type") {
		t.Errorf("got %v, %v, want the subject in UTF-8 and no sign", form, err)
	}
	item := itemOf(t, callback.Alipay(), nil, string(payload))
	if item.DeliveryID != "2026010100222161821001551453140885" || item.Order != "17" {
		t.Errorf("got %+v, want the event of the order 17", item)
	}
}

// vectorKey is the public key of the signatures that openssl made.
const vectorKey = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAqdrrivsLsaZ3pEsfcfBd
gTlbTE1aCB2cI8PJgrFEdfJo8inAIkW5sLbjfViwpUpVe7L/tIVa/Lufqd4oVkz2
z/g7LSI/FiccS6GGJhi/eGXdMev0MpGDsGdG/UswXa8Ou4UyAZ7lcwmS2z4wh+9W
mY3nWvsl5EBcb0XEsUst1jPgLqx27sPEZ4h3/VMj4M7GVUp7HaegUt1mwJ5DIlNW
pFet6Q0uu7GZyjakn6J0ycdYbQRi1b7N45IR3QOVjr7RJcpoj3s9mEFFa4j6McsB
6jBmK4hXMDdcjWJIYUAQCDHwmRYJwTh+ictM4fsq1aSG0MF1Vs0kuH22d83TuFTP
NwIDAQAB
-----END PUBLIC KEY-----`

// altered is a delivery with one change to what Alipay has signed, or to the signature.
func altered(r *rand.Rand, good url.Values) url.Values {
	form := maps.Clone(good)
	names := slices.Sorted(maps.Keys(form))
	name, other := names[r.IntN(len(names))], names[r.IntN(len(names))]
	value := form.Get(name)
	switch r.IntN(8) {
	case 0: // another byte
		b := []byte(value)
		b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
		return with(form, name, string(b))
	case 1:
		return with(form, name)
	case 2: // under another name
		return with(with(form, name), name+"x", value)
	case 3:
		return with(form, "gmt_refund", "2026-01-02 16:18:21")
	case 4:
		return with(form, name, value, form.Get(other))
	case 5: // one takes the other's place
		return with(with(form, name, form.Get(other)), other, value)
	case 6: // a part of the text
		return with(form, name, value[:r.IntN(len(value))])
	default: // in front, behind
		at := r.IntN(2) * len(value)
		return with(form, name, value[:at]+string(rune(' '+r.IntN(90)))+value[at:])
	}
}

// TestAlipayAltered: of a thousand altered deliveries none is proven.
func TestAlipayAltered(t *testing.T) {
	t.Parallel()
	r, s := redistest.Rand(t), signers()[0]
	v := verifyAlipay(t, s.public)
	for _, notice := range []url.Values{alipayNotice(), inGBK(t, with(alipayNotice(), "charset", "GBK"))} {
		good := alipayBy(s, notice)
		for tried := 0; tried < 1000; {
			form := altered(r, good)
			if maps.EqualFunc(form, good, slices.Equal) {
				continue
			}
			tried++
			if payload, err := v(t.Context(), signedDelivery(form.Encode())); err == nil {
				t.Errorf("%s: got it proven with %s, want it refused", form.Encode(), payload)
			}
		}
	}
}

// TestAlipayCutAnew: what was signed is one text, so fields can be put into each other. No
// such form is an event of another order, app, seller or amount.
func TestAlipayCutAnew(t *testing.T) {
	t.Parallel()
	s := signers()[0]
	v, p := verifyAlipay(t, s.public), callback.Alipay()
	named := []string{"notify_id", "out_trade_no", "trade_status", "total_amount", "gmt_refund", "refund_fee", "out_biz_no", "app_id", "seller_id"}
	notice := with(with(alipayNotice(), "body", "tea"), "subject", "tea")
	good := alipayBy(s, notice)
	fields := strings.Split(alipaySigned(notice), "&")
	cut := 0
	for from := range fields {
		for to := from + 1; to < len(fields); to++ {
			name, value, _ := strings.Cut(strings.Join(fields[from:to+1], "&"), "=")
			form := url.Values{"sign": good["sign"], "sign_type": good["sign_type"]}
			for i, field := range fields {
				if other, text, _ := strings.Cut(field, "="); i < from || i > to {
					form.Set(other, text)
				}
			}
			form.Set(name, value)
			cut++
			payload, err := v(t.Context(), signedDelivery(form.Encode()))
			if err != nil {
				continue
			}
			if _, err := p.Items(nil, payload); err != nil {
				continue
			}
			for _, field := range named {
				if form.Get(field) != good.Get(field) {
					t.Errorf("%s: got it accepted with another %s, want it refused", form.Encode(), field)
				}
			}
		}
	}
	if cut < 50 {
		t.Errorf("got %d forms to try, want more", cut)
	}
}

// TestAlipayEndpoint: what VerifyAlipay proves is what the preset reads.
func TestAlipayEndpoint(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	s, sh, p := signers()[0], &shop{}, callback.Alipay()
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{})
	made, err := callback.New(p, g, verifyAlipay(t, s.public), sh.book, &callback.Options{OnError: sh.hear})
	if err != nil {
		t.Fatal(err)
	}
	h := nethttp.Handler(made)
	good := alipayBy(s, alipayNotice())
	deliver(h, good.Encode()).is(t, p.Done)
	deliver(h, good.Encode()).is(t, p.Done)
	deliver(h, alipayBy(s, inGBK(t, with(alipayNotice(), "charset", "GBK"))).Encode()).is(t, p.Done)
	sh.once(t, 1)
	if len(sh.told) != 0 {
		t.Errorf("the hook got %v, want nothing", sh.told)
	}
	forged := p.Refused
	forged.Status = 401
	deliver(h, with(good, "total_amount", "0.01").Encode()).is(t, forged)
	if !sh.heard(callback.ErrUnverified) {
		t.Errorf("the hook got %v, want %v", sh.told, callback.ErrUnverified)
	}
	sh.told = nil
	deliver(h, alipayBy(s, with(alipayNotice(), "charset", "big5")).Encode()).is(t, p.Refused)
	if !sh.heard(callback.ErrMalformed) || sh.heard(callback.ErrUnverified) {
		t.Errorf("the hook got %v, want %v alone", sh.told, callback.ErrMalformed)
	}
}

func TestAlipayArguments(t *testing.T) {
	t.Parallel()
	for _, app := range []string{"", " ", "2021 ", "wx2021"} {
		_, err := callback.VerifyAlipay(app)
		if err == nil || !strings.Contains(err.Error(), "VerifyAlipay: appID") || !strings.Contains(err.Error(), "VerifyAlipay: no keys") {
			t.Errorf("%q: got %v, want both faults", app, err)
		}
	}
}
