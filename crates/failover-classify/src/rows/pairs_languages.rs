//! A thing and what became of it, in the languages of providers, relays and their portals.
//!
//! Each line is one language. Chinese is written in simplified characters and speaks for the traditional ones too.

use super::text;
use crate::rule::{Fact, Family, Rule};
use failover_types::FailoverReason::{
    Auth, AuthPermanent, Billing, ContentRefusal, ContextOverflow, EmptyResponse, ModelNotFound, Overloaded,
    RateLimit, ServerError, SessionExpired, Timeout,
};

pub(crate) const ROWS: &[Rule] = &[
    text("core/tongues-rate", Family::Rate, RateLimit, &[
        "{リクエスト|呼び出し|アクセス}{頻度|の頻度} .. {高すぎ*|多すぎ*|上限|超え*}",
        "{senden|fragen|schicken} .. zu {schnell|oft|häufig}",
        // Chinese
        "{同时|同一时间|并发|并行} .. {上限|超出|超过|超限|最多|只能|已满|过多|太多|不能超}",
        "{最多|只能|只允许|不超过|仅限}{|可|能}{同时|并行|并发}",
        "{请求|调用|提问|访问|操作|发送|提交|消息} .. {太密集|太快|太频|太急|太密|过密|过快|过频|过急|过于密集|过于频繁|得太多}",
        "{本小时|今日|今天|本日|本周|当日|每日|每天|这一小时|当前时段|本时段|本分钟|每分钟|每小时} .. {用掉|用光|用罄|用完|用尽|耗尽|耗光|到顶|上限|达到|已满}",
        "{等待|等候|请等} .. {其他|前面|之前|先前|正在|当前|其它} .. {请求|任务|会话|对话} .. {完成|结束}",
        "{降低|减少|放慢|减慢|控制} .. {请求|调用|访问|发送|提问} .. {频率|速度|节奏|频次}",
        "{超出|超过|达到|触及} .. {速率|频率|频次|流量|请求量|访问量|调用量|次数} .. {限制|上限|阈值}",
        // Japanese
        "{同時に|同時|並行} .. {件まで|本まで|上限|超え*|制限|多すぎ*}",
        "{1時間|1分|1日|本日|今日|一日|毎分|今週|1週間|本日分} .. {使い切*|使い果た*|上限|達し*|超え*|までです}",
        "{リクエスト|呼び出し|送信|アクセス|質問|メッセージ}{が|の間隔が|の頻度が|数が|回数が} .. {多すぎ|速すぎ|短すぎ|高すぎ|頻繁|上限|超え*}",
        // Korean
        "{한 시간|1시간|시간당|분당|1분|하루|오늘|이번 주|일일|일주일} .. {모두 썼|다 썼|소진|초과|도달|넘었|모두 사용|다 사용|한도}",
        "동시에 .. {개까지|건까지|초과|제한|이상|만 }",
        "{요청|호출|메시지|질문}{이|가|을|를|} {너무|지나치게} {자주|빠르|많|잦}",
        // Russian
        "{исчерпал*|исчерпан*|израсходов*|использова*|превысил*|превышен*|закончил*} .. {дневн*|суточн*|часов*|недельн*|минутн*|на сегодня|сегодня|за час|за минуту|в час|в минуту|в сутки|за сутки|в день|за день}",
        "{дневн*|суточн*|часов*|недельн*|минутн*} .. {норм*|лимит*|квот*|запрос*|сообщен*|обращен*} .. {исчерпан*|израсходован*|превышен*|закончил*|достигнут*|использован*}",
        "{одновременн*|параллельн*} .. {не более|не больше|лимит*|превышен*|максимум|запрос*|слишком много|разрешен*}",
        "запрос* .. {слишком часто|реже|одновременно|параллельно}",
        // German
        "{gleichzeitig*|parallel*|zeitgleich*} .. {anfragen|aufrufe|höchstens|maximal|nicht mehr als|überschritten|zu viele}",
        "{anfragen|aufrufe|abfragen|sitzungen} .. {gleichzeitig|parallel|zeitgleich}",
        "{heute|diese stunde|diese woche|pro minute|pro stunde|pro tag|tages*|stunden*|wochen*} .. {keine weiteren|keine anfragen mehr|aufgebraucht|verbraucht|ausgeschöpft|erreicht}",
        "{langsamer|seltener} {senden|anfragen|aufrufen}",
        // French
        "{épuisé|utilisé|consommé|dépassé|atteint|plus de} .. {messages|requêtes|appels|quota|limite|questions} .. {jour|heure|minute|semaine|aujourd'hui|journée|quotidien*|horaire}",
        "{requêtes|appels|demandes|connexions|générations} {simultanées|simultanés|en parallèle|parallèles|concurrentes|à la fois|en même temps}",
        "{ralentissez|espacez}",
        // Spanish
        "{agotado|agotó|superado|usado|consumido|alcanzado|sin} .. {consultas|solicitudes|peticiones|mensajes|llamadas|cuota|usos|límite} .. {hora|día|hoy|minuto|semana|diari*}",
        "{solicitudes|peticiones|consultas|llamadas} {simultáneas|concurrentes|en paralelo|paralelas|a la vez|al mismo tiempo}",
        "demasiado {rápido|seguido|a menudo}",
        // Portuguese
        "{esgotou|atingiu|usou|consumiu|excedeu|ultrapassou|gastou} .. {mensagens|consultas|requisições|solicitações|chamadas|cota|limite} .. {hoje|hora|dia|minuto|semana|diári*}",
        "{requisições|solicitações|chamadas|consultas} {simultâneas|concorrentes|em paralelo|paralelas|ao mesmo tempo}",
        "{rápido demais|muito rápido|depressa demais}",
        // Italian
        "{esaurito|raggiunto|superato|consumato|finito|terminato|usato} .. {richieste|messaggi|chiamate|limite|quota|domande} .. {oggi|ora|giorno|minuto|settimana|giornalier*|orari*}",
        "{limite|quota} {giornalier*|orari*|settimanal*|di richieste|di chiamate} .. {raggiunt*|superat*|esaurit*}",
        "{richieste|chiamate} {simultanee|contemporanee|in parallelo|parallele}",
        "{troppe|troppo} {chiamate|domande|frequent*|spesso|velocemente}",
        // Turkish
        "{istek|çağrı|mesaj|sorgu|kota*|limit*|sınır*|hakkınız|hakkı} .. {doldu|aşıldı|aştı|aştınız|tükendi|bitti|ulaştınız|ulaşıldı|dolmuş}",
        "çok {fazla|sık|hızlı} {istek|mesaj|çağrı|sorgu}",
        "{günlük|saatlik|dakikalık|haftalık} .. {limit*|kota*|sınır*|hakk*|istek*} .. {doldu|aşıldı|aştınız|tükendi|bitti|ulaş*}",
        "aynı anda .. {istek|en fazla}",
        // Vietnamese
        "{hết|vượt quá|vượt|đạt|dùng hết} .. {lượt|hạn mức|giới hạn|quota} .. {hôm nay|trong ngày|mỗi phút|mỗi giờ|trong giờ|phút|ngày|giờ|gọi|yêu cầu}",
        "{gửi|gọi} .. quá {nhanh|nhiều|thường xuyên}",
        // Indonesian, Malay
        "{kuota|batas|limit|jatah} .. {harian|per jam|per menit|hari ini|mingguan|permintaan} .. {habis|terlampaui|tercapai|terlewati}",
        "terlalu {banyak|sering|cepat} .. {permintaan|request|pesan|panggilan}",
        "{permintaan|panggilan} {bersamaan|serentak}",
        // Polish
        "{dzienny|godzinowy|tygodniowy|minutowy|dobowy} .. limit .. {wyczerpan*|przekroczon*|osiągni*|wykorzystan*}",
        "limit .. {zapytań|żądań|wiadomości|wywołań} .. {wyczerpan*|przekroczon*|osiągni*|wykorzystan*}",
        "zbyt {wiele|często|szybko|dużo} .. {zapytań|żądań|wywołań|wysyłasz}",
        "{zapytań|żądań} {jednocześnie|równocześnie|równoległych|jednoczesnych}",
        // Arabic
        "{تجاوزت|تجاوز|بلغت|استنفدت|استنفاد|وصلت} .. {حد|الحد|حصة|حصتك} .. {الطلبات|طلبات|اليومي|الدقيقة|الساعة|اليوم}",
        "{الكثير من|عدد كبير من} الطلبات",
        // Dutch
        "{limiet|quotum|daglimiet|verzoeken} .. {bereikt|overschreden|opgebruikt}",
    ])
    .none(&[
        "模型长度", "上下文", "字数", "token 数", "字符", "文字数", "контекст*", "kontext*", "contexte", "contexto", "contesto", "guthaben", "budget", "余额",
        "кредит*", "средств*", "大小", "bağlam", "kredi*", "bakiye*", "升级", "充值", "加购", "购买",
    ]),
    text("core/tongues-billing", Family::Billing, Billing, &[
        "{料金|請求|代金|利用料} .. {未払い*|滞納*|未納*}",
        // Chinese
        "{余额|积分|点数|额度|钱包|账户|资金|费用|流量包|免费额度|代金券} .. {归零|用罄|用光|不够|见底|清零|透支|已空|花完|扣完|耗光|不足以}",
        "{免费|试用|赠送|体验}{额度|次数|积分|点数|金|期|版} .. {用罄|用完|用尽|用光|耗尽|结束|到期|过期|已满}",
        "{请|需|需要|须|建议} .. {加值|储值|升级方案|升级套餐|升级会员|订阅|续订|加购|充值|付款|缴费|绑定信用卡|绑定银行卡}",
        "{升级|更换|购买|订购}{方案|套餐|会员|版本|资费}",
        "{订阅|方案|会员|套餐|授权|合约|合同} .. {到期|过期|失效|已终止|已取消|已结束|终止}",
        "{账单|发票|款项|费用} .. {未付|未缴|逾期|未结清|拖欠}",
        "{信用卡|银行卡|扣款|付款|支付|扣费} .. {失败|被拒|无效|过期}",
        // Japanese
        "{残高|クレジット|ポイント|チケット|利用枠|無料枠|料金} .. {足り*|不足*|なく*|尽き*|使い切*|ありません|マイナス*|ゼロ*}",
        "{サブスクリプション|契約|プラン|ライセンス|お試し期間|無料期間|無料トライアル|トライアル} .. {期限切れ*|有効期限*|終了*|切れ*|解約*|失効*}",
        "{カード|決済|引き落とし|お支払|支払い} .. {失敗*|拒否*|できません*|無効*|期限*|確認できま*}",
        "{チャージ|入金|課金|購入}{して|が必要|を行*|してください}*",
        // Korean
        "{잔액|크레딧|포인트|요금|잔여|금액|충전금} .. {모자*|부족*|없*|소진*|떨어*|0원}",
        "{구독|요금제|이용권|라이선스|무료 체험|체험} .. {종료*|만료*|해지*|끝났*}",
        "{결제|카드|청구서|요금} .. {실패*|거절*|미납*|연체*|등록*}",
        // Russian
        "{нет|не осталось|кончил*|закончил*|не хватает|недостаточно|мало} .. {денег|деньги|средств*|кредит*|баллов|баланс*}",
        "{на счете|на счёте|на балансе|на вашем счете|на вашем счёте} .. {не осталось|нет|недостаточно|ноль|мало|пусто|не хватает}",
        "{баланс*|счет|счёт|кошелек|кошелёк} .. {пуст*|нулев*|отрицательн*|исчерпан*|недостат*|ниже}",
        "{подписк*|тариф*|пробн* период|лицензи*|абонемент*} .. {не активн*|неактивн*|истек*|истёк*|закончил*|отменен*|отменён*|приостановлен*|завершил*}",
        "{оплатите|продлите|пополните|внесите} .. {тариф*|подписк*|счет*|счёт*|баланс*|оплат*|средств*}",
        "{платеж|платёж|карт*|оплат*} .. {не прошел|не прошёл|не прошла|отклонен*|отклонён*|просрочен*|недействит*}",
        // German
        "{guthaben|kontostand|saldo|kredit} .. {reicht|nicht aus|nicht ausreich*|zu niedrig|zu gering|aufgebraucht|erschöpft|leer|negativ|null}",
        "{kein|keine|keinerlei|nicht genug|nicht genügend|zu wenig|ohne} {guthaben|kredit|kredite|credits|deckung|geld}",
        "{abonnement|abo|vertrag|tarif|lizenz|testphase|probephase|testzeitraum} .. {ausgelaufen|abgelaufen|beendet|gekündigt|endete|erloschen|zu ende|nicht aktiv|inaktiv}",
        "{rechnung|zahlung|lastschrift|karte} .. {offen|unbezahlt|überfällig|fehlgeschlagen|abgelehnt|geplatzt|ausstehend}",
        "{laden|füllen|zahlen|begleichen} {sie |}{ihr |das |bitte |die |}{guthaben|konto|rechnung}",
        // French
        "{plus de|plus assez de|pas assez de|sans|aucun|manque de} {crédit|crédits|solde|fonds|argent}",
        "{abonnement|forfait|essai|licence|période d'essai} .. {pris fin|expiré*|terminé*|résilié*|échu*|inactif|n'est plus actif|arrivé* à échéance|suspendu*}",
        "{crédit*|solde|fonds} .. {épuisé*|insuffisant*|ne suffit pas|ne suffisent pas|trop faible|à zéro|négatif*|nul}",
        "{facture|paiement|prélèvement|carte} .. {impayé*|refusé*|rejeté*|échoué|en retard|expiré*|en souffrance}",
        // Spanish
        "{no tiene|no tienes|no dispone de|no hay|no queda|no quedan|sin|falta|no cuenta con} .. {saldo|créditos|crédito|fondos}",
        "{saldo|créditos|crédito|fondos} .. {insuficiente*|agotad*|no alcanza*|no es suficiente|no son suficientes|en cero|negativ*|bajo}",
        "{suscripción|plan|licencia|período de prueba|prueba} .. {vencid*|venció|caducad*|caducó|expirad*|expiró|cancelad*|terminó|finalizó|finalizad*|inactiv*}",
        "{factura|pago|tarjeta|cobro} .. {impagad*|rechazad*|vencid*|pendiente|fallid*|falló}",
        // Portuguese
        "{não possui|não tem|não há|não dispõe de|sem|acabaram|faltam|não restam} .. {créditos|saldo|crédito|fundos}",
        "{saldo|créditos|crédito|fundos} .. {insuficiente*|esgotad*|não é suficiente|não são suficientes|zerad*|negativ*|não cobre}",
        "{assinatura|plano|licença|período de teste|teste} .. {expirou|expirad*|vencid*|venceu|cancelad*|terminou|encerrad*|inativ*}",
        "{fatura|pagamento|cartão|boleto} .. {pendente|vencid*|recusad*|em atraso|em aberto|não foi pag*|falhou}",
        // Italian
        "{non hai|non ha|non avete|senza|finiti i|finito il|mancano|non ci sono} .. {crediti|credito|saldo|fondi}",
        "{saldo|credito|crediti|fondi} .. {insufficient*|esaurit*|non bastano|non basta|non sufficient*|negativ*|terminat*|a zero}",
        "{abbonamento|piano|licenza|periodo di prova|prova} .. {scadut*|terminat*|disdett*|cessat*|conclus*|non attiv*|annullat*}",
        "{fattura|pagamento|carta|addebito} .. {non pagat*|rifiutat*|scadut*|in sospeso|fallit*|respint*}",
        // Turkish
        "{bakiye*|kredi*|paranız|kontör} .. {yeterli değil|yetersiz|tükendi|bitti|kalmadı|yok|sıfır|eksi|yetmiyor}",
        "{yetersiz|yeterli} {bakiye|kredi|para}",
        "{abonelik|aboneliğiniz|üyeliğiniz|plan|deneme süre*} .. {sona erdi|bitti|doldu|iptal|süresi}",
        "{ödeme|fatura|kart*} .. {başarısız|reddedildi|ödenmemiş|gecikmiş}",
        // Vietnamese
        "{không đủ|hết|không còn} .. {tiền|số dư|tín dụng|credit}",
        "{số dư|tín dụng|tài khoản} .. {không đủ|đã hết|âm|không còn}",
        "{gói|đăng ký|thuê bao} .. {đã hết hạn|hết hạn|đã hủy}",
        // Indonesian, Malay
        "{saldo|kredit|dana} .. {tidak mencukupi|tidak cukup|habis|kosong|kurang|tidak memadai}",
        "{langganan|paket|masa percobaan} .. {berakhir|kedaluwarsa|habis|tamat}",
        "{tagihan|pembayaran} .. {belum dibayar|gagal|tertunggak|ditolak}",
        // Polish
        "{brak|niewystarczające|za mało|niewystarczająca} .. {środków|środki|kredytów|salda|ilość środków}",
        "{saldo|środki|kredyty} .. {wyczerpan*|niewystarczając*|skończył*|ujemne}",
        "{subskrypcja|abonament|plan|okres próbny} .. {wygasł*|zakończył*|anulowan*|nieaktywn*}",
        "{płatność|faktura|karta} .. {odrzucon*|nieopłacon*|nieudan*|zaległ*}",
        // Arabic
        "{رصيد|الرصيد|رصيدك|رصيدكم} .. {غير كاف|لا يكفي|نفد|انتهى|منخفض|غير كافي}",
        "{اشتراك|اشتراكك|الاشتراك} .. {انتهى|منتهي|ملغى|غير نشط}",
        "{فشل|رفض|تعذر} {الدفع|عملية الدفع|البطاقة}",
        // Dutch
        "{tegoed|saldo|krediet} .. {op|ontoereikend|onvoldoende|leeg|negatief}",
        "{abonnement|proefperiode} .. {verlopen|beëindigd|opgezegd}",
    ])
    .none(&[
        "重置", "后恢复", "リセット*", "本日", "毎日", "1日", "会话", "对话", "次日", "明天", "明日", "充足", "今日", "每日", "本小时", "上下文", "频率", "context*", "contexto", "kontext*", "token", "jeton", "トークン",
        "토큰", "токен*", "anmeldung", "certificat*", "sitzung", "sesión", "sessão", "sessione", "пароль", "请求过",
    ])
    .facts(&[Fact::Short]),
    text("core/tongues-gone", Family::AccountGone, AuthPermanent, &[
        "{账号|账户|用户|密钥|组织|金钥} .. {停权|永久封|永久停|封锁|除名|终止|遭封|被锁|已关闭}",
        "{アカウント|キー|組織|ユーザー} .. {凍結*|永久*|削除*|取り消*|失効*|停止*|閉鎖*}",
        "{계정|키|조직} .. {영구*|해지*|폐쇄*|취소*}",
        "{аккаунт*|учетн*|учётн*|ключ*|доступ*} .. {навсегда|аннулирован*|отозван*|ликвидирован*|закрыт навсегда}",
        "{hesab*|anahtar*} .. {kapatıldı|askıya alındı|silindi|iptal edildi|engellendi|yasaklandı}",
        "{tài khoản|khóa} .. {đã bị xóa|bị khóa vĩnh viễn|đã bị thu hồi|bị cấm}",
        "{akun|kunci} .. {telah dihapus|dicabut|ditutup|diblokir permanen}",
        "{konto|klucz} .. {zablokowan*|usunięt*|zawieszon*|unieważnion*}",
        "{حساب*|الحساب|حسابك} .. {تعليق|حظر|إغلاق|حذف|موقوف|محظور}",
        "{account|chiave|utente} .. {sospes*|bloccat* definitivamente|revocat*|eliminat*|chius*|bannat*}",
    ])
    .none(&[
        "欠费", "账单", "オプション", "支払*", "결제", "оплат*", "ödeme", "thanh toán", "pembayaran", "pagamento", "płatnoś*", "temporan*", "временно", "暂时", "一時的*",
        "일시적*", "geçici", "sementara", "tạm thời", "模型", "モデル", "모델", "model*", "модел*", "会话", "セッション", "subscription", "dibayar", "账单", "سداد",
    ])
    .facts(&[Fact::Short]),
    text("core/tongues-overloaded", Family::Overloaded, Overloaded, &[
        "{zu viel|viel zu viel} los",
        "{使用人数|访问人数|在线人数|用户|人数|流量|访问量|请求量} .. {众多|过多|较多|太多|激增|暴增|过大|爆满|很多}",
        "{算力|资源|显卡|容量|计算资源|gpu|服务器} .. {紧缺|紧张|告急|不够|已满|满载|耗尽|吃紧|短缺}",
        "{服务器|伺服器|系统|服务|模型|主机} .. {忙线|太忙|忙碌|繁忙|超载|超负荷|过载|满载|负荷过高|压力过大|负荷|应接不暇}",
        "{排队中|正在排队|需要排队|队列已满|队列过长|等待队列|排队等候}",
        "{サーバー|サーバ|システム|サービス|モデル|gpu|処理能力|回線} .. {限界|逼迫*|満杯*|混雑*|混み*|過負荷|手一杯|いっぱい|余裕がありません|空きがありません|不足*}",
        "{利用者|アクセス|リクエスト|ユーザー} .. {集中*|殺到*|急増*|増加*}",
        "{서버|서비스|시스템|모델|gpu|사용자|접속} .. {바쁩*|바빠*|붐비*|몰려*|가득*|포화*|폭주*|부족*|과부하}",
        "{сервер*|сервис*|систем*|модел*|мощност*|gpu} .. {загружен*|занят*|перегруж*|не справля*|переполнен*|не хватает|заняты|исчерпан*}",
        "{слишком много|наплыв|высокая|большая|повышенная} {пользовател*|посетител*|нагрузк*|загрузк*|спрос*}",
        "{server|dienst|modell|system|kapazität*|gpus|rechner|instanzen} .. {überlast*|belegt|ausgelastet|voll|erschöpft|am limit|überfordert|ausgebucht|an ihre grenzen}",
        "{andrang|ansturm|nachfrage} .. {groß|hoch|gewaltig|enorm}",
        "{serveurs|serveur|service|système|modèle|capacité*|gpu} .. {débordé*|saturé*|surchargé*|complet|complets|occupé*|pleine capacité|trop sollicité*|à bout|pris d'assaut}",
        "{servidores|servidor|servicio|sistema|modelo|capacidad} .. {lleno*|saturad*|sobrecargad*|ocupad*|desbordad*|colapsad*|al límite|agotada|congestionad*}",
        "{servidores|servidor|serviço|sistema|modelo|capacidade} .. {cheio*|lotad*|sobrecarregad*|ocupad*|congestionad*|no limite|esgotada|saturad*}",
        "{server|servizio|sistema|modello|capacità} .. {sovraccaric*|occupat*|pien*|satur*|al limite|congestionat*|esaurita|intasat*}",
        "{sunucu*|sistem*|model*|servis*|hizmet*} .. {yoğun*|meşgul*|dolu|aşırı yük*|kapasite*}",
        "{máy chủ|hệ thống|mô hình|dịch vụ} .. {quá tải|bận|đầy|đông}",
        "{server|peladen|sistem|layanan} .. {sibuk|penuh|kelebihan|padat|terlalu ramai}",
        "{serwer*|system|usługa|model} .. {przeciążon*|zajęt*|obciążon*|pełn*}",
        "{الخادم|الخوادم|النظام|الخدمة|النموذج} .. {مشغول*|مزدحم*|مثقل*|ممتلئ*|ضغط}",
    ])
    .none(&["auslastungsplan", "磁盘", "disk", "диск*", "contexte", "contexto", "контекст*", "kontext*", "contesto", "キー", "上下文", "beschreibbar", "restaurant", "您的", "余额", "额度"])
    .facts(&[Fact::Short]),
    text("core/tongues-model", Family::Model, ModelNotFound, &[
        "{no conocemos|não conhecemos|non conosciamo|desconocemos} .. {modelo|modello}",
        "{modelo|modello|modèle} {inexistente|inesistente|inexistant}",
        "{模型|模型名称|引擎|部署} .. {停止提供|停止服务|未提供|未注册|未登记|未上架|不提供|未部署|尚未开放|暂未支持|不认识|无法识别|不在列表|已移除|已退役|未找到|查无|不支援|未知|未加载|没有加载}",
        "{方案|套餐|账号|账户|等级|密钥|区域|地区} .. {无法使用|不能使用|不可使用|不包含|不支持|未包含|无法访问|无权使用} .. 模型",
        "{未知|不明|不支援|不存在|没有这个|没有此|没有该|查无此|无此}{|的}{模型|引擎}",
        "{模型|引擎} .. {不支持|不支援|无法处理|不能处理|不具备|没有} .. {图片|图像|影像|语音|音频|视频|工具|函数|视觉|附件}",
        "モデル .. {提供してい*|登録されて*|提供されて*|ありません|不明*|未登録*|未対応*|対応して*|見つから*|存在しな*|ご利用いただけ*|終了*|廃止*|配備されて*|認識でき*}",
        "{등록되지 않은|알 수 없는|지원하지 않는|존재하지 않는|없는|제공하지 않는|지원되지 않는} .. 모델",
        "모델{이|을|은|는|의} .. {없습니다|제공하지*|등록되지*|알 수 없*|배포되지*|찾지 못*|지원하지*|폐지*}",
        "{такой|такая|этой|данной|указанн*|запрошенн*} модел* .. {нет|не существует|не найдена|не поддержива*|не обслужива*|неизвестна|недоступна|не зарегистрирована}",
        "модел* .. {не зарегистрирован*|не развернут*|не развёрнут*|не предоставля*|не обслужива*|не умеет|не принимает|неизвестн*|не известн*|отсутств*|выведена|больше не}",
        "{modell|modells|engine|deployment} .. {nicht bekannt|kennen wir nicht|nicht angeboten|nicht mehr angeboten|nicht bereitgestellt|nicht registriert|gibt es nicht|nicht vorhanden|nicht geladen|abgekündigt|ausgemustert|wird nicht|nicht im angebot|unbekannt|kann keine|versteht keine}",
        "{dieses|dies|so ein|solches|das genannte|das angeforderte} modell .. {kennen|gibt es|existiert|haben wir|bieten wir|führen wir} .. nicht",
        "{modèle} .. {n'est plus proposé|plus proposé|pas proposé|n'est pas connu|pas reconnu|n'est pas déployé|n'est pas hébergé|pas au catalogue|n'est pas installé|n'est pas chargé|obsolète|n'accepte pas|ne gère pas|ne sait pas|n'est pas servi|arrêté}",
        "modelo .. {no está en|no figura|no se ofrece|no es compatible|no se reconoce|no desplegado|no está desplegado|no está cargado|fue retirado|ha sido retirado|obsoleto|no puede|descatalogado|no forma parte|no se admite}",
        "modelo .. {não está em|não consta|não é oferecido|não é compatível|não reconhecido|não implantado|não está disponível|não está carregado|foi retirado|foi descontinuado|obsoleto|não aceita|não faz parte}",
        "modello .. {non è disponibile|non è presente|non è offerto|non è supportato|non riconosciuto|non è noto|non è stato trovato|ritirato|obsoleto|non accetta|non fa parte|sconosciuto|non è più}",
        "model* .. {desteklenmiyor|bulunamadı|mevcut değil|tanımlı değil|bilinmiyor|kaldırıldı|kullanılamıyor|sunulmuyor}",
        "{không tìm thấy|không có|không hỗ trợ|không tồn tại} .. mô hình",
        "mô hình .. {không tồn tại|không được hỗ trợ|không khả dụng|không có|đã ngừng|không hợp lệ}",
        "model .. {tidak dikenal|tidak didukung|tidak ditemukan|tidak tersedia|tidak ada|dihentikan}",
        "{nie ma takiego|nieznany|nie znaleziono|nieobsługiwany|brak} modelu*",
        "{nieznany|nieobsługiwany|wycofany} model",
        "model .. {nieznany|nie jest dostępny|nie jest obsługiwany|wycofan*|nie został}",
        "النموذج .. {غير موجود|غير متاح|غير متوفر|غير مدعوم|غير معروف}",
        "{لا يوجد|لم يتم العثور على} .. {نموذج|النموذج}",
    ])
    .none(&[
        "暂时", "稍后", "一時的*", "しばらく", "일시적*", "временно", "vorübergehend", "temporairement", "temporalmente", "temporariamente", "temporaneamente",
        "geçici", "tạm thời", "sementara", "上限", "长度", "lang", "long", "largo", "longo", "長*", "длин*", "参数", "параметр*", "responder", "answer", "antwort",
        "token", "回复", "返回", "响应", "応答", "返さ*", "응답", "ответ*", "réponse", "risposta", "yanıt", "负载", "过载", "繁忙", "敏感", "违",
    ])
    .facts(&[Fact::Short]),
    text("core/tongues-auth", Family::Auth, Auth, &[
        "{金钥|密钥|凭证|令牌|api key|apikey|口令|签章|签名|授权码|存取权杖|权杖} .. {无效|错误|不正确|有误|过期|失效|不符|不匹配|缺少|缺失|不存在|未提供|被拒|停用|不合法|验证失败|未带}",
        "{没有|未|缺少|没|请}{携带|提供|传入|填写|带上|附带|带} .. {令牌|密钥|金钥|凭证|token|认证|授权}",
        "{没有|无|缺少|不具|未有|未获} .. {存取|访问|使用|调用|操作|足够的} .. {权限|权|授权}",
        "{请|需|重新|请先|请重新}{登入|登录}",
        "{apiキー|アクセスキー|キー|トークン|認証情報|署名|資格情報|パスワード} .. {一致し*|ありません|無効*|誤り*|誤って*|正しく*|間違*|期限*|失効*|不正*|見つかりません|確認でき*|違い*|指定されて*|設定されて*}",
        "{アクセス権|権限|利用権限}{が|は} .. {ありません|ない|不足*|与えられて*}",
        "{api 키|인증 키|키|토큰|인증 정보|인증서|서명|자격 증명|비밀번호} .. {확인할 수 없*|올바르지*|일치하지*|잘못*|없습니다|누락*|만료*|유효하지*|틀*|거부*}",
        "{ключ*|токен*|подпис*|учетные данные|учётные данные|пароль|логин} .. {не подходит|не подош*|устарел*|не найден*|не указан*|не передан*|неизвестен|неизвестн*|не совпад*|не действ*|не распозна*|отсутству*|невер*|неправильн*|недейств*}",
        "{*schlüssel|schlüssel|token|kennung|zugangsdaten|passwort|signatur} .. {stimmt nicht|stimmen nicht|passt nicht|nicht korrekt|nicht gefunden|kennen wir nicht|nicht mehr gültig|ungültig|inkorrekt|wurde nicht akzeptiert|gehört nicht|veraltet|nicht angegeben}",
        "{kein|keinen|ohne|fehlender|fehlendes|falscher|falsches|unbekannter} {gültigen |gültiger |gültiges |}{*schlüssel|schlüssel|token|zugangsdaten}",
        "{clé|jeton|identifiants|signature|mot de passe} .. {n'est pas reconnu*|pas reconnu*|n'est pas valide|n'est pas correct*|erroné*|ne correspond pas|n'existe pas|manque|absent*|périmé*|révolu*|incorrect*|inconnu*}",
        "{aucune|pas de|sans} {clé|jeton|authentification|identifiant*}",
        "{clave|llave|token|credencial*|firma|contraseña} .. {no es correct*|no es válid*|no coincide|errónea|erróneo|no existe|no reconocid*|no se reconoce|equivocad*|incorrect*|falta|caducad*|vencid*}",
        "{chave|token|credencia*|assinatura|senha} .. {não é válid*|não é corret*|não confere|não corresponde|errad*|incorret*|não foi reconhecid*|não existe|vencid*|faltando|inválid*}",
        "{chiave|token|credenziali|firma|password} .. {non è corrett*|non è valid*|errat*|non corrisponde|non riconosciut*|sbagliat*|non esiste|scadut*|mancant*|non corrett*}",
        "{anahtar*|jeton|kimlik|token|şifre} .. {hatalı|geçersiz|yanlış|eksik|bulunamadı|süresi|tanınmadı|doğrulanamadı|reddedildi}",
        "{khóa|token|mã|chữ ký|thông tin đăng nhập} .. {không đúng|sai|không hợp lệ|hết hạn|thiếu|không tìm thấy}",
        "{kunci|token|kredensial|tanda tangan} .. {salah|tidak valid|tidak sah|kedaluwarsa|tidak ditemukan|hilang|tidak cocok|ditolak}",
        "{klucz|token|dane logowania|podpis} .. {nieprawidłow*|niepoprawn*|błędn*|nieważn*|wygasł*|nie pasuje|nieznan*|odrzucon*}",
        "{brak|nieprawidłowy|błędny|nieważny} {klucza|klucz|tokenu|token|autoryzacji|uprawnień|uwierzytelnienia}",
        "{مفتاح|المفتاح|رمز|الرمز|بيانات} .. {غير صحيح|غير صالح|خاطئ|منتهي|مفقود|مرفوض|غير معروف}",
        "{sleutel|token} .. {ongeldig|onjuist|verlopen|onbekend|ontbreekt}",
    ])
    .none(&[
        "会话", "对话", "セッション", "conversa*", "sitzung", "url", "模型", "モデル", "모델", "model*", "модел*", "modèle", "max token*", "tokens", "токенов", "证书", "certificat*",
        "сертификат*", "証明書", "пробн*", "proxy*", "json", "参数", "unexpected token", "主键", "primär*",
    ])
    .facts(&[Fact::Short]),
    text("core/tongues-overflow", Family::Overflow, ContextOverflow, &[
        "{输入|对话|文字|文本|内容|提示|提示词|会话|聊天记录|消息|上下文|字数|prompt} .. {过长|太长|太多|超长|超出模型|超过模型|超出上限|超过长度|长度限制|长度上限|超出长度|处理的范围|过大|太大|放不下|装不下}",
        "{缩短|精简|删减|减少|截断} .. {输入|内容|文字|对话|提示|提示词|文本|上下文|长度|消息}",
        "{会話|入力|文章|プロンプト|文字数|テキスト|履歴|メッセージ|コンテキスト|内容} .. {長くなりすぎ*|長すぎ*|長い*|上限を超え*|超えて*|多すぎ*|大きすぎ*|収まら*|収まり*|オーバー*}",
        "{대화|입력|텍스트|프롬프트|내용|문장|메시지|컨텍스트} .. {너무 깁*|너무 길*|너무 많*|너무 큽*|초과*|넘*|벗어*|담을 수 없*}",
        "{текст|запрос|сообщение|промпт|контекст|диалог|переписка|ввод} .. {слишком велик*|слишком длин*|слишком больш*|не помеща*|не влеза*|превыша*|больше допустим*|длиннее|превысил*}",
        "{text|eingabe|prompt|verlauf|gespräch|nachricht|anfrage|dokument|inhalt} .. {zu lang|zu groß|überschreitet das kontext*|überschreitet die|passt nicht|zu umfangreich|länger als|sprengt|überschreitet}",
        "{texte|message|conversation|prompt|entrée|requête|document|saisie|contenu} .. {trop long*|trop grand*|trop volumineu*|dépasse|excède|ne tient pas|ne rentre pas|trop étendu*}",
        "{texto|mensaje|conversación|prompt|entrada|documento|solicitud|contenido} .. {demasiado extens*|demasiado larg*|demasiado grande|muy larg*|excede|supera|no cabe|no entra|sobrepasa}",
        "{texto|mensagem|conversa|prompt|entrada|documento|conteúdo} .. {longo demais|longa demais|muito long*|muito extens*|grande demais|excede|ultrapassa|não cabe|extenso demais}",
        "{testo|messaggio|conversazione|prompt|richiesta|input|documento|contenuto} .. {troppo lung*|troppo grande|troppo estes*|supera|eccede|non entra|oltre il limite|più lungo}",
        "{metin|metniniz|mesaj*|istem|girdi|sohbet|konuşma|bağlam|içerik} .. {çok uzun|çok büyük|fazla uzun|aşıyor|aştı|sığmıyor|sınırını}",
        "{văn bản|đầu vào|tin nhắn|hội thoại|nội dung|ngữ cảnh|câu hỏi} .. {quá dài|quá lớn|vượt quá|dài hơn}",
        "{teks|masukan|pesan|percakapan|prompt|konteks|dokumen} .. {terlalu panjang|terlalu besar|melebihi|terlalu banyak}",
        "{tekst|wiadomość|rozmowa|prompt|zapytanie|wejście|kontekst|dokument} .. {za dług*|zbyt dług*|za duż*|przekracza|nie mieści}",
        "{النص|الرسالة|المحادثة|الإدخال|السياق|الطلب} .. {طويل جدا|طويل جدًا|طويلة جدا|طويلة جدًا|يتجاوز|تتجاوز|أطول من|كبير جدا|كبير جدًا}",
        "{tekst|bericht|gesprek|invoer} .. {te lang|te groot}",
    ])
    .none(&[
        "每分钟", "每日", "每天", "频率", "频次", "次数", "并发", "同时", "会话数", "任务数", "额度", "配额", "分あたり", "毎分", "1日", "回数", "분당", "요청 수", "일일", "쿼터", "pro minute", "pro tag", "par minute",
        "por minuto", "al minuto", "в минуту", "dakika*", "per menit", "mỗi phút", "余额", "saldo", "guthaben", "crédit*", "图片", "图像", "画像", "이미지", "bild", "image*", "imagen",
        "imagem", "immagine", "изображени*", "kuota", "quota*", "cuota", "cota", "kota", "kontingent*", "limit zapytań", "速率", "tpm", "时间过长", "时间太长", "時間が*", "시간", "timeout",
        "cola", "fila", "队列", "排队", "délai", "tiempo", "tempo", "名称", "文件名", "aforo",
    ])
    .facts(&[Fact::Short]),
    text("core/tongues-refusal", Family::Refusal, ContentRefusal, &[
        "{内容|话题|问题|回答} .. {不适宜|不宜|不适合|不便} .. {展示|回答|显示|讨论|输出|生成}",
        "{提问|问题|内容|输入|请求|话题|回答|回复|消息} .. {敏感|违反|违规|违禁|不当|不适宜|不合规|涉政|涉黄|色情|暴力|有害|不安全|法律法规} .. {无法|不能|拒绝|请修改|拦截|停止|不予|屏蔽|过滤|请重新|规定|内容}",
        "{无法|不能|拒绝}{回答|生成|提供|处理|讨论|继续} .. {违反|敏感|不当|违规|不适|有害|规定|政策|法律}",
        "{不適切*|有害*|暴力的*|性的*|差別的*|違法*|ポリシー*|規約*|ガイドライン*} .. {含ま*|反する*|反し*|違反*|検出*} .. {できません|生成でき*|お答えでき*|応答でき*|拒否*|ブロック*|停止*}",
        "{不適切*|有害*|違法*|ポリシー*|規約*} .. {お答えできません|回答できません|生成できません|応答できません|処理できません}",
        "{부적절한|유해한|폭력적인|선정적인|불법적인|민감한} .. {표현|내용|콘텐츠|주제|요청} .. {답변*|생성*|차단*|거부*|처리할 수 없*}",
        "{недопустим*|неприемлем*|запрещен*|запрещён*|оскорбительн*|вредоносн*|опасн*} .. {содержан*|контент*|тем*|материал*|содержимо*|выражен*}",
        "{отклонен*|отклонён*|заблокирован*|отказ*} .. {модераци*|политик* безопасн*|правил* контент*|недопустим*|неприемлем*|цензур*}",
        "{verstößt|verstoßen|widerspricht|verletzt} .. {nutzungsregeln|nutzungsbedingungen|richtlinie*|regeln|inhalts*|vorgaben|grundsätze|gemeinschafts*}",
        "{anstößig*|unangemessen*|unzulässig*|schädlich*|verboten*} .. {inhalt*|anfrage|eingabe|text|themen|thema|formulierung*}",
        "{ne respecte pas|ne respectent pas|contrevient|enfreint|viole|contraire à|contraires à|va à l'encontre} .. {règles|politique*|conditions|charte|directives|normes|standards}",
        "{contenu|propos|message|texte|demande} .. {inapproprié*|interdit*|offensant*|choquant*|illicite*|haineu*|dangereux}",
        "{no cumple|incumple|infringe|viola|contraviene|va en contra de|no respeta} .. {normas|políticas|política|reglas|directrices|condiciones|términos}",
        "{contenido|lenguaje|mensaje|texto} .. {inapropiad*|ofensiv*|prohibid*|ilícit*|no permitido|dañin*}",
        "{viola|infringe|não respeita|desrespeita|descumpre|fere|contraria} .. {diretrizes|políticas|política|regras|normas|termos}",
        "{conteúdo|linguagem|mensagem|texto} .. {inadequad*|ofensiv*|proibid*|impróprio|ilegal|nocivo}",
        "{viola|non rispetta|contravviene|infrange|contrario a|contraria a} .. {linee guida|norme|regole|politiche|policy|condizioni|termini}",
        "{contenuto|testo|messaggio|linguaggio} .. {inappropriat*|offensiv*|vietat*|non consentito|dannos*|illecit*}",
        "{içerik|içeriğiniz|mesaj*|istek*} .. {uygunsuz|kurallar*|politika*|yasak*} .. {ihlal*|engellendi|aykırı|reddedildi|içeriyor}",
        "{nội dung|yêu cầu|câu hỏi} .. {vi phạm|không phù hợp|bị chặn|nhạy cảm|bị từ chối}",
        "{konten|permintaan|pesan} .. {melanggar|tidak pantas|diblokir|dilarang|sensitif}",
        "{treść|zapytanie|wiadomość} .. {narusza|nieodpowiedni*|niedozwolon*|zablokowan*|zabronion*}",
        "{المحتوى|الطلب|الرسالة|النص} .. {ينتهك|تنتهك|يخالف|محظور|غير لائق|غير مسموح}",
    ])
    .none(&[
        "konto", "compte", "cuenta", "conta", "аккаунт*", "账号", "账户", "アカウント", "계정", "hesab*", "tài khoản", "akun", "频率", "次数", "超出", "超过", "格式", "参数", "schema", "ip",
        "json", "モデル", "模型不", "limite", "límite", "лимит*",
    ])
    .facts(&[Fact::Short]),
    text("core/tongues-timeout", Family::Transport, Timeout, &[
        "{等待|响应|回应|处理|生成|连线|请求|回复}* .. {时间过长|时间太长|逾时|过久|太久|超出时间|超过时间|没有回应|无响应|未响应}",
        "{无法|不能|未能}{连接|连线|联系|访问} .. {服务器|服务|主机|伺服器|网络|端点|上游}",
        "{応答|処理|生成|接続|返答|通信} .. {時間がかか*|時間切れ*|間に合*|途絶*|タイムアウト|時間内*|遅延*|届きません*|返ってき*|できませんでした}",
        "{응답|처리|연결|생성|통신} .. {시간이 초과*|너무 오래*|지연*|제한 시간*|끊어*|끊겼*|없어*|시간 내*|응답하지*}",
        "{сервер|модель|сервис|провайдер|узел} .. {не ответил*|не отвечает|молчит|не успел*|долго не}",
        "{ответ* не|не дождались|не удалось дождаться|слишком долго} .. {получен*|пришел|пришёл|ответа|отвеча*|вовремя|ждали}",
        "{server|modell|dienst|gegenstelle|anbieter|backend} .. {nicht rechtzeitig|nicht geantwortet|antwortet nicht|reagiert nicht|zu langsam|nicht erreichbar|keine antwort|zu lange}",
        "{hat zu lange gedauert|dauerte zu lange|zeit überschritten|zeit ist abgelaufen|höchstdauer}",
        "{serveur|modèle|service|fournisseur} .. {pas répondu à temps|n'a pas répondu|ne répond pas|ne répond plus|trop longtemps|injoignable|trop lent|pas répondu}",
        "{servidor|modelo|servicio|proveedor} .. {no respondió|no responde|no ha respondido|tardó demasiado|tarda demasiado|ha tardado|inalcanzable}",
        "{servidor|modelo|serviço|provedor} .. {não respondeu|não responde|demorou demais|demorou muito|inacessível|demora}",
        "{server|modello|servizio|fornitore} .. {non ha risposto|non risponde|troppo tempo|irraggiungibile|troppo a lungo|non raggiungibile}",
        "{sunucu|model|servis} .. {yanıt vermedi|yanıt vermiyor|cevap vermedi|ulaşılamıyor|zamanında}",
        "{máy chủ|mô hình} .. {không phản hồi|phản hồi quá lâu|quá thời gian}",
        "{server|model|layanan} .. {tidak merespons|tidak menanggapi|terlalu lama|tidak dapat dihubungi|tidak menjawab}",
        "{serwer|model|usługa} .. {nie odpowiada|nie odpowiedział*|przekroczył czas|zbyt długo}",
        "{الخادم|النموذج|الخدمة} .. {لم يستجب|لا يستجيب|استغرق|تأخر}",
        "{انتهى الوقت|مهلة الطلب|انتهاء المهلة|تجاوز المهلة}",
    ])
    .none(&["对话", "会话", "上下文", "sesión", "sessão", "sitzung", "ツール", "内容过长", "tarjeta", "proxy*", "会話", "대화"])
    .facts(&[Fact::Short]),
    text("core/tongues-session", Family::Session, SessionExpired, &[
        "{会话|对话|线程|聊天|上下文缓存|缓存} .. {已过期|过期|清除|删除|不存在|失效|找不到|逾时|已结束|已关闭|遗失|已回收}",
        "{会話|スレッド|セッション|チャット|キャッシュ} .. {削除されました|削除され*|消去*|期限*|失われ*|終了しま*|見つから*|存在しま*|無効に*}",
        "{대화|세션|스레드|채팅|캐시} .. {삭제*|만료*|사라*|없습니다|찾을 수 없*|종료*}",
        "{беседа|диалог|чат|сессия|история|ветка|кэш} .. {удален*|удалён*|устарел*|истек*|истёк*|не найден*|больше не|очищен*|закрыт*}",
        "{gesprächsverlauf|gespräch|unterhaltung|konversation|sitzung|chat|verlauf} .. {existiert nicht|nicht mehr|abgelaufen|gelöscht|nicht gefunden|nicht auffindbar|wurde beendet|verfallen}",
        "{conversation|session|discussion|fil} .. {supprimé*|expiré*|n'existe plus|n'existe pas|introuvable|effacé*|fermé*|plus disponible}",
        "{conversación|sesión|hilo|chat} .. {eliminad*|ya no existe|borrad*|caducad*|expiró|no existe|no se encuentra|cerrad*}",
        "{conversa|sessão|thread|chat} .. {excluíd*|já não existe|não existe mais|apagad*|expirou|expirad*|encerrad*|não foi encontrad*}",
        "{conversazione|sessione|chat} .. {eliminat*|non esiste più|non esiste|scadut*|cancellat*|non trovat*|chius*}",
        "{oturum|sohbet|konuşma} .. {sona erdi|bulunamadı|silindi|süresi doldu|mevcut değil}",
        "{phiên|cuộc trò chuyện|hội thoại} .. {hết hạn|không tồn tại|đã bị xóa|không tìm thấy}",
        "{sesi|percakapan} .. {berakhir|kedaluwarsa|tidak ditemukan|dihapus|habis}",
        "{sesja|rozmowa|konwersacja} .. {wygasł*|nie istnieje|usunięt*|nie znaleziono|zakończon*}",
    ])
    .none(&[
        "过长", "太长", "長すぎ*", "너무", "слишком", "zu lang", "trop long*", "demasiado", "muito", "troppo", "登录", "登入", "ログイン", "로그인", "войдите", "anmelden", "einloggen",
        "connecter", "iniciar", "inicie", "login", "accedi", "token", "giriş", "đăng nhập", "zaloguj", "masuk", "令牌", "次数",
    ])
    .facts(&[Fact::Short]),
    text("core/tongues-empty", Family::Empty, EmptyResponse, &[
        "{未|没有|没|并未}{给出|返回|产生|输出|生成|回复}{任何|有效} .. {回复|内容|结果|输出|答案|文字|回应|回答}",
        "{模型|服务|上游|助手} .. {未|没有|没|并未}{给出|返回|产生|输出|生成|回覆|回应} .. {回复|回覆|内容|结果|输出|答案|文字}",
        "{モデル|サーバー|アシスタント} .. {何も返*|何も出力*|何も生成*|空の|応答を返*|返しませんでした|返されませんでした}",
        "{모델|서버} .. {아무것도|아무 내용도|빈 응답|빈 답변|응답을 반환하지|내용을 반환하지}",
        "{модель|сервер|ассистент} .. {ничего не|не вернул*|пустой|не выдал*|не дал*}",
        "{modell|server|assistent} .. {nichts zurückgegeben|nichts geliefert|nichts geantwortet|nichts erzeugt|keinen text|keinen inhalt|leer zurück|keine ausgabe}",
        "{modèle|serveur|assistant} .. {rien renvoyé|rien répondu|rien produit|rien retourné|aucun texte|aucune réponse|aucun contenu|réponse vide}",
        "{modelo|servidor|asistente} .. {no devolvió nada|no devolvió|no respondió nada|no generó|nada devolvió|ningún texto|ningún contenido|ninguna respuesta}",
        "{modelo|servidor|assistente} .. {não retornou|não devolveu|não gerou|não respondeu nada|nenhum texto|nenhum conteúdo|nenhuma resposta}",
        "{modello|server|assistente} .. {non ha restituito|non ha prodotto|non ha generato|nessun testo|nessun contenuto|nessuna risposta}",
        "model .. {boş yanıt|hiçbir şey döndürmedi|yanıt üretmedi|không trả về|tidak mengembalikan|tidak menghasilkan|nie zwrócił|pustą}",
    ])
    .none(&["时间", "超时", "時間", "시간", "вовремя", "времен*", "rechtzeitig", "à temps", "a tiempo", "a tempo", "in tempo", "zamanında", "审核", "过滤", "安全"])
    .facts(&[Fact::Short]),
    text("core/tongues-server", Family::Server, ServerError, &[
        "{服务器|伺服器|服务|后端|系统|引擎|推理} .. {发生错误|出错|出了点问题|出问题|故障|崩溃|异常|内部错误|宕机|无法使用}",
        "{サーバー|サーバ|システム|バックエンド|サービス|推論}{側|} .. {問題が発生*|エラーが発生*|障害*|異常*|不具合*|落ち*|クラッシュ*}",
        "{서버|시스템|백엔드|서비스} .. {문제가*|오류가*|장애가*|에러가*|다운*|고장*|비정상*}",
        "{сервер*|бэкенд*|сервис*|систем*|движк*} .. {сломал*|ошибк*|сбой|упал*|неполадк*|аварий*|отказал*}",
        "{сбой|неполадк*|авария|ошибка} .. {сервер*|бэкенд*|сервис*|систем*}",
        "{server|dienst|backend|system} .. {schiefgelaufen|schief gegangen|fehler aufgetreten|gestört|abgestürzt|ausgefallen|störung|defekt}",
        "{erreur|problème|panne|incident} .. {serveur|service|système|interne|technique}",
        "{serveur|service|système} .. {en panne|erreur|planté|hors service}",
        "{algo|error|problema|fallo} .. {salió mal|fallado|servidor|sistema|interno|técnico}",
        "{algo deu errado|erro|problema|falha} .. {servidor|sistema|interno|interna|técnico}",
        "{errore|problema|guasto|qualcosa è andato storto} .. {server|sistema|interno|tecnico|servizio}",
        "{sunucu*|sistem*} .. {hata*|sorun*|arıza*|çöktü}",
        "{máy chủ|hệ thống} .. {lỗi|sự cố}",
        "{kesalahan|gangguan|masalah} .. {server|sistem|layanan|internal}",
        "{błąd|awaria|problem} .. {serwer*|system*|wewnętrzn*|usług*}",
        "{خطأ|مشكلة|عطل} .. {الخادم|النظام|داخلي|الخدمة}",
    ])
    .facts(&[Fact::Short, Fact::NoStatus])
    .none(&["参数", "格式", "パラメータ", "매개변수", "parameter", "parámetro", "parâmetro", "parametro", "параметр*", "paramètre", "parametre", "密钥", "模型不存在", "权限"]),
];
